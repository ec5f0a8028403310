/* SPDX-License-Identifier: MIT */
/* The memory map of a process: /proc/PID/maps. */
#ifndef MTBPF_TARGET_MAPS_H
#define MTBPF_TARGET_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t pgoff;	     /* file offset of start, bytes */
	uint32_t prot;	     /* PROT_READ | PROT_WRITE | PROT_EXEC */
	uint32_t maj, min;
	uint64_t ino;
	char *path; /* as /proc shows it, escapes undone, " (deleted)" kept; "" for anonymous */
};

struct mappings {
	struct mapping *v; /* ascending by start */
	size_t n;
};

/* Every mapping of the process. 0, or -errno (-ESRCH: no such process). Prints nothing. */
int mappings__read(struct mappings *maps, pid_t pid);
/* The same from the text of a maps file. -EINVAL: a line that is none. */
int mappings__parse(struct mappings *maps, const char *text);
void mappings__fini(struct mappings *maps);
/* Of a local: mappings__fini() where its block ends. */
#define _cleanup_mappings_ __attribute__((cleanup(mappings__fini)))

/*
 * Whether it shows memory, which a process writes code to: anonymous, named or not, the heap, a
 * memfd, a deleted file. Not the kernel's own pages ("[vdso]", "[uprobes]").
 */
bool mapping__is_memory(const struct mapping *mapping);

/* The mapping that holds addr, or NULL. */
const struct mapping *mappings__find(const struct mappings *maps, uint64_t addr);

/*
 * Files of an overlay (overlayfs), as containers have them. A probe belongs to an inode of the
 * layer that a file was opened in. Whoever writes to the file, or only touches it, makes a copy in
 * the upper layer: all names lead to the copy from then on, and none of those to what still runs.
 */

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
