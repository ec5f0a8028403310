/* SPDX-License-Identifier: MIT */
/*
 * A cgroup of the unified hierarchy (v2): its directory, and the processes in and below it; and the
 * limits of CPU time and memory of a process's cgroup, of either version.
 */
#ifndef MTBPF_TARGET_CGROUP_H
#define MTBPF_TARGET_CGROUP_H

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup {
	char path[PATH_MAX];
	int fd; /* of the directory */
};

/*
 * Finds the directory of `name`: `name` itself if it is absolute, otherwise below the mount point
 * of cgroup2 in the text of a mountinfo file (proc(5)). 0; -ENOENT if cgroup2 is not mounted;
 * -ENAMETOOLONG.
 */
int cgroup__locate(const char *mountinfo, const char *name, char path[static PATH_MAX]);

/*
 * Opens the cgroup with this name. 0, or -EINVAL after one line and a hint on stderr: it does not
 * exist, belongs to a v1 hierarchy, or is not a cgroup.
 */
int cgroup__open(struct cgroup *cgroup, const char *name);
void cgroup__close(struct cgroup *cgroup);

/* The pids of the cgroup and of all below it, ascending. The caller frees *pids. 0 or -errno. */
int cgroup__processes(const struct cgroup *cgroup, pid_t **pids, size_t *n);
/*
 * The CPUs of its cpuset, or of the nearest cgroup above that has one. 0; -ENOENT: none has one;
 * -errno.
 */
int cgroup__cpus(const struct cgroup *cgroup, cpu_set_t *cpus);
/* False if all its processes, and those below it, have ended. */
bool cgroup__populated(const struct cgroup *cgroup);

/* The limits of CPU time and memory of a process's cgroup, of version 1 or 2. */

#define CPU_QUOTA_TEXT_SIZE 256

struct cpu_quota {
	/* "cgroup /web/a, quota 10.0 ms of 100 ms": the nearest that has one; "": none has. */
	char text[CPU_QUOTA_TEXT_SIZE];
};

/*
 * proc: where proc(5) is mounted. Without a quota the text is "". 0; -ENOENT if the process is
 * gone, or there is no such controller.
 */
int cpu_quota__find(const char *proc, pid_t pid, struct cpu_quota *quota);
/*
 * Like cpu_quota__find(), for memory: "the limit of cgroup /web/a", followed by ", or of one above
 * it" if several have limits, because the kernel does not tell which one was reached.
 */
int memory_limit__find(const char *proc, pid_t pid, struct cpu_quota *limit);

#endif
