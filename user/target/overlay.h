/* SPDX-License-Identifier: MIT */
/*
 * Files of an overlay (overlayfs), as containers have them. A probe belongs to an inode of the
 * layer that a file was opened in. Whoever writes to the file, or only touches it, makes a copy in
 * the upper layer: all names lead to the copy from then on, and none of those to what still runs.
 */
#ifndef MTBPF_TARGET_OVERLAY_H
#define MTBPF_TARGET_OVERLAY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct layer_paths {
	char (*v)[PATH_MAX];
	size_t n, cap;
};

/* Whether the path leads to a file of an overlay. */
bool overlay__has(const char *path);

/*
 * Adds where the lower layers would have the file, the topmost first, by the text of a mountinfo
 * file (proc(5)) of the process that calls it `path`: of its overlay, if it lies in one. A layer
 * that is named relatively has its place in each of the folders that docker, containerd and podman
 * mount from. 0 or -ENOMEM.
 */
int overlay__lower_paths(struct layer_paths *paths, const char *mountinfo, const char *path);

#endif
