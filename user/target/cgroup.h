/* SPDX-License-Identifier: MIT */
/* A cgroup of the unified hierarchy (v2): its directory, and the processes in and below it. */
#ifndef MTBPF_TARGET_CGROUP_H
#define MTBPF_TARGET_CGROUP_H

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cgroup {
	char path[PATH_MAX];
	int fd; /* of the directory */
};

/*
 * Where `name` is: itself where it is absolute, else below the mount point of cgroup2 that the text
 * of a mountinfo file (proc(5)) shows. 0; -ENOENT cgroup2 is mounted nowhere; -ENAMETOOLONG.
 */
int cgroup__locate(const char *mountinfo, const char *name, char path[static PATH_MAX]);

/*
 * Opens a cgroup by its name. 0, or -EINVAL after one line and a hint on stderr: there is none,
 * it is of a v1 hierarchy, or no cgroup at all.
 */
int cgroup__open(struct cgroup *cgroup, const char *name);
void cgroup__close(struct cgroup *cgroup);

/* The pids of it and of all below it, ascending. *pids is freed by the caller. 0 or -errno. */
int cgroup__processes(const struct cgroup *cgroup, pid_t **pids, size_t *n);
/*
 * The CPUs that its cpuset allows, or the nearest one's above it. 0; -ENOENT none has a cpuset;
 * -errno.
 */
int cgroup__cpus(const struct cgroup *cgroup, cpu_set_t *cpus);
/* False where no process is left in it, nor below it. */
bool cgroup__populated(const struct cgroup *cgroup);

#endif
