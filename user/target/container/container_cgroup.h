/* SPDX-License-Identifier: MIT */
/* What container runtimes and the kubelet call the cgroups that they make. */
#ifndef MTBPF_TARGET_CONTAINER_CONTAINER_CGROUP_H
#define MTBPF_TARGET_CONTAINER_CONTAINER_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Whether `name`, the last part of a cgroup's path, is that of a container whose id begins with
 * `id`: "docker-ID.scope", "cri-containerd-ID.scope", "crio-ID.scope", "libpod-ID.scope" (systemd),
 * "libpod-payload-ID" (podman in a unit's cgroup), the first without ".scope", or the ID alone
 * (cgroupfs). Not its monitor's ("libpod-conmon-ID").
 * An ID is 64 hexadecimal digits; one that is something else has to be given as a whole.
 */
bool container_cgroup__is(const char *name, const char *id);

/*
 * Whether it is that of the pod with this UID: "kubepods-burstable-podUID.slice", whose UID has '_'
 * for '-' (systemd), also behind a cgroup of the kubelet's own ("kubelet-kubepods-..."), or
 * "podUID" (cgroupfs).
 */
bool container_cgroup__is_pod(const char *name, const char *uid);

struct cgroup_paths {
	char (*v)[PATH_MAX];
	size_t n, cap;
};

/*
 * Adds the paths of all cgroups below the folder `top` for which `is` says so of their name, but
 * none that lies in another that was added. 0, -ENOMEM, or -errno of reading `top`.
 */
int container_cgroup__find(struct cgroup_paths *paths, const char *top,
			   bool (*is)(const char *name, const char *what), const char *what);

#endif
