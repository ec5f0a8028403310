/* SPDX-License-Identifier: MIT */
/* The capabilities of this process, by number (CAP_* of linux/capability.h). */
#ifndef MTBPF_KERNEL_CAPABILITY_H
#define MTBPF_KERNEL_CAPABILITY_H

#include <stdbool.h>

/* In the effective set. */
bool capability__effective(int capability);
/* Effective, and in the initial user namespace: what the kernel's capable() asks. */
bool capability__has(int capability);

#endif
