/* SPDX-License-Identifier: MIT */
/* The capabilities of this process, by number (CAP_* of linux/capability.h). */
#ifndef MTBPF_KERNEL_CAPABILITY_H
#define MTBPF_KERNEL_CAPABILITY_H

#include <stdbool.h>

/* In the effective set. */
bool capability__effective(int capability);
/* Effective, and in the initial user namespace: what the kernel's capable() asks. */
bool capability__has(int capability);

/*
 * Gives up, for good, all but what opens files and those of other processes: what somebody else
 * wrote is read next. Nor does a program give them back. Of the calling thread, and of those that
 * it starts. 0 or -errno.
 */
int capability__keep_for_files(void);
/* The same, and those of other processes are no longer among them. */
int capability__keep_for_our_files(void);

#endif
