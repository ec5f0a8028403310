/* SPDX-License-Identifier: MIT */
/* The limits of CPU time and memory that a process is under: of its cgroup, of version 1 or 2. */
#ifndef MTBPF_TARGET_CPU_QUOTA_H
#define MTBPF_TARGET_CPU_QUOTA_H

#include <stdint.h>
#include <sys/types.h>

#define CPU_QUOTA_TEXT_SIZE 256

struct cpu_quota {
	uint64_t
		cgroup; /* the process's own: its directory's inode, which is the kernel's number */
	/* "cgroup /web/a, quota 10.0 ms of 100 ms": the nearest that has one; "": none has. */
	char text[CPU_QUOTA_TEXT_SIZE];
};

/* proc: "/proc". 0; -ENOENT where the process is gone, or there is no such controller. */
int cpu_quota__find(const char *proc, pid_t pid, struct cpu_quota *quota);
/*
 * The same for memory: "the limit of cgroup /web/a", followed by ", or of one above it" if several
 * have limits, because the kernel does not tell which one was reached.
 */
int memory_limit__find(const char *proc, pid_t pid, struct cpu_quota *limit);

#endif
