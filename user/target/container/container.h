/* SPDX-License-Identifier: MIT */
/* A container, or a pod, by its name or ID: where its processes are. */
#ifndef MTBPF_TARGET_CONTAINER_CONTAINER_H
#define MTBPF_TARGET_CONTAINER_CONTAINER_H

#include <limits.h>

#include "target/pid_set.h"

struct container {
	char path[PATH_MAX]; /* of its cgroup (v2); "" where it has none */
	struct pid_set pids; /* its processes then, by their cgroups of version 1 */
};

/*
 * Finds a running container by its ID, its name, or the first digits of its ID, in this order.
 * 0; or after a line and a hint on stderr: -ESRCH there is none, or it does not run; -ENOTUNIQ;
 * -ENOMEM. container__fini() in any case.
 */
int container__find(struct container *container, const char *name);
/* The same for a pod, "NAMESPACE/POD", or one container of it, "NAMESPACE/POD/CONTAINER". */
int container__find_pod(struct container *container, const char *name);
void container__fini(struct container *container);

#endif
