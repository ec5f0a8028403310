/* SPDX-License-Identifier: MIT */
/*
 * The names that containers and pods have, by what their runtimes leave on the disk: no daemon is
 * asked, and none need run.
 */
#ifndef MTBPF_TARGET_CONTAINER_CONTAINER_NAMES_H
#define MTBPF_TARGET_CONTAINER_CONTAINER_NAMES_H

#include <stddef.h>

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
 * folder `root`
 * ("": this machine's). What is not there, or is damaged, is left out. 0 or -ENOMEM.
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
