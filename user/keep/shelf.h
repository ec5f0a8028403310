/* SPDX-License-Identifier: MIT */
/*
 * A folder of recordings, the newest of which are kept. One that is being written has a name that
 * begins with a dot, and gets its own by rename(2) when it is complete; one that is removed loses
 * it by that first. So what has such a name is whole: it may be copied by whoever watches the
 * folder. Who reads one may hold a lock (flock(2), a shared one will do) on its directory: it is
 * not removed meanwhile. What the folder holds else is left alone.
 */
#ifndef MTBPF_KEEP_SHELF_H
#define MTBPF_KEEP_SHELF_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

struct shelf {
	char dir[PATH_MAX];
	size_t keep;	    /* recordings */
	uint64_t max_bytes; /* of all together */
};

/* A place for one more recording. */
struct shelf_slot {
	char partial[PATH_MAX]; /* the directory to write it into */
	char path[PATH_MAX];	/* its name when it is complete */
	int lock_fd;		/* says that it is being written */
};

struct shelf_item {
	char *name;
	uint64_t unix_ms;
	uint64_t bytes;
};

struct shelf_content {
	VEC(struct shelf_item) items; /* oldest first */
	uint64_t bytes;
};

/*
 * Makes the folder where it is missing (mode 0700), sees that it can be written to, and removes
 * what a mtbpf left that was killed while it wrote. 0, or -errno after a line and a hint.
 */
int shelf__open(struct shelf *shelf, const char *dir, size_t keep, uint64_t max_bytes);

/* A slot for a recording of that process and time. 0 or -errno. Prints nothing. */
int shelf__begin(const struct shelf *shelf, const char *process, uint64_t unix_ms,
		 struct shelf_slot *slot);
/*
 * The recording is complete: it is brought to the disk, the oldest make room for it, and it gets
 * its name. *bytes is its size. 0; -EFBIG: it is larger than all may be, and was removed; another
 * -errno: what could not be done; it was removed as well. The slot is closed. Prints nothing.
 */
int shelf__finish(const struct shelf *shelf, struct shelf_slot *slot, uint64_t *bytes);
/* Removes what was written, and closes the slot. */
void shelf__abandon(struct shelf_slot *slot);

/* What it holds, for shelf_content__fini(). 0 or -errno. */
int shelf__look(const struct shelf *shelf, struct shelf_content *content);
void shelf_content__fini(struct shelf_content *content);

#endif
