/* SPDX-License-Identifier: MIT */
/* Containers and pods by name or ID: their cgroups and processes. */
#ifndef MTBPF_TARGET_CONTAINER_H
#define MTBPF_TARGET_CONTAINER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "target/process.h"

struct container {
	char path[PATH_MAX]; /* of its cgroup (v2), or "" */
	struct pid_set pids; /* without a path: its processes, by /proc/PID/cgroup */
};

/*
 * Finds a running container by its name (of containerd also its ID), otherwise by its ID or the
 * first digits of that. 0; -ENOMEM; or after a line and a hint on stderr: -ESRCH not found or not
 * running; -ENOTUNIQ; an error of process_list__read(). container__fini() in any case.
 */
int container__find(struct container *container, const char *name);
/*
 * Like container__find(), for a pod, "NAMESPACE/POD" ("POD": in the namespace "default"), or one
 * container of it, "NAMESPACE/POD/CONTAINER". Only by name.
 */
int container__find_pod(struct container *container, const char *name);
void container__fini(struct container *container);

/* Names of cgroups made by container runtimes and the kubelet. */

/*
 * True if `name`, the last part of a cgroup's path, belongs to a container whose ID begins with
 * `id`: "docker-ID.scope", "cri-containerd-ID.scope", "crio-ID.scope", "libpod-ID.scope",
 * "nerdctl-ID.scope" (systemd), "libpod-payload-ID" (podman in a unit's cgroup), any of these
 * without ".scope", or only the ID (cgroupfs). False for its monitor ("libpod-conmon-ID"). An ID is
 * 64 hexadecimal digits; any other ID must be given in full.
 */
bool container_cgroup__is(const char *name, const char *id);

/*
 * True if `name` belongs to the pod with this UID: "kubepods-burstable-podUID.slice", whose UID has
 * '_' for '-' (systemd), also with the kubelet's prefix ("kubelet-kubepods-..."), or "podUID"
 * (cgroupfs).
 */
bool container_cgroup__is_pod(const char *name, const char *uid);

struct cgroup_paths {
	char (*v)[PATH_MAX];
	size_t n, cap;
};

/*
 * Adds the paths of all cgroups below the folder `top` whose name satisfies `is`, except those
 * inside another that was added. 0, -ENOMEM, or -errno of reading `top`.
 */
int container_cgroup__find(struct cgroup_paths *paths, const char *top,
			   bool (*is)(const char *name, const char *what), const char *what);

/* Names of containers and pods, from the files that their runtimes leave. No daemon is asked. */

struct container_name {
	char *name;
	char *id; /* a container's ID, or a pod's UID */
};

struct container_names {
	struct container_name *v;
	size_t n, cap;
};

void container_names__fini(struct container_names *names);

/*
 * Adds those of docker (/var/lib/docker/containers), podman and CRI-O
 * (/var/lib/containers/storage), and containerd (/run/containerd, and /run/k3s/containerd:
 * nerdctl's names, a kubelet's container names, and IDs that are names themselves), below the
 * folder `root` ("": this machine's). Missing and damaged files are skipped. 0 or -ENOMEM.
 */
int container_names__read(struct container_names *names, const char *root);

/*
 * Adds the pods that have logs in /var/log/pods, as "NAMESPACE/POD" with their UID, and their
 * containers' in /var/log/containers, as "NAMESPACE/POD/CONTAINER" with their ID. 0 or -ENOMEM.
 */
int pod_names__read(struct container_names *names, const char *root);

/*
 * The image that a container was made of, as docker, containerd or CRI-O noted it; freed by the
 * caller. NULL: none is known.
 */
char *container_names__image(const char *root, const char *id);

#endif
