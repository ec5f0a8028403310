/* SPDX-License-Identifier: MIT */
/* time_namespaces(7): a process may see another CLOCK_MONOTONIC than the kernel's. */
#ifndef MTBPF_TARGET_TIME_NAMESPACE_H
#define MTBPF_TARGET_TIME_NAMESPACE_H

#include <stdint.h>
#include <sys/types.h>

/* What the process's CLOCK_MONOTONIC is ahead of the kernel's; 0 where that is not known. */
int64_t time_namespace__offset_ns(pid_t pid);
/* The same from the text of a timens_offsets file. */
int64_t time_namespace__parse(const char *text);

#endif
