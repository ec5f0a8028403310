/* SPDX-License-Identifier: MIT */
/* pid_namespaces(7): whether the pids that we see are the kernel's own. */
#ifndef MTBPF_KERNEL_PID_NAMESPACE_H
#define MTBPF_KERNEL_PID_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Ours, by its file; false: it is the initial one, or not known. */
bool pid_namespace__is_own(uint64_t *dev, uint64_t *ino);

#endif
