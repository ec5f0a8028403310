/* SPDX-License-Identifier: MIT */
/* The memory map of a process (/proc/PID/maps), and the overlay layers of a mapped file. */
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
/* Like mappings__read(), from the text of a maps file. -EINVAL: a line cannot be parsed. */
int mappings__parse(struct mappings *maps, const char *text);
void mappings__fini(struct mappings *maps);
/* For a local: calls mappings__fini() at the end of its block. */
#define _cleanup_mappings_ __attribute__((cleanup(mappings__fini)))

/*
 * True for memory to which a process may write code: anonymous, named or not, the heap, the stack,
 * shared memory, a memfd, a deleted file. False for the kernel's own pages ("[vdso]", "[uprobes]").
 */
bool mapping__is_memory(const struct mapping *mapping);

/* The path's length without " (deleted)", which /proc adds to the name of a deleted file. */
size_t mapping_path__length(const char *path);

/* The mapping that holds addr, or NULL. */
const struct mapping *mappings__find(const struct mappings *maps, uint64_t addr);

/*
 * Files of an overlay (overlayfs), as in containers. A probe belongs to an inode of the layer from
 * which a file was opened. Writing to the file, or touching it, copies it to the upper layer: all
 * names then lead to the copy, and none to the file that still runs.
 */

struct layer_paths {
	char (*v)[PATH_MAX];
	size_t n, cap;
};

/* True if an overlay provides the file at this path. */
bool overlay__has(const char *path);

/*
 * Adds the file's paths in the lower layers of its overlay, the topmost first. mountinfo is the
 * text of /proc/PID/mountinfo of the process in which the file is at `path`. A layer with a
 * relative name is looked for in each folder that docker, containerd and podman mount from. 0 or
 * -ENOMEM.
 */
int overlay__lower_paths(struct layer_paths *paths, const char *mountinfo, const char *path);

#endif
