/* SPDX-License-Identifier: MIT */
/*
 * A folder that keeps the newest recordings. While a recording is written its name begins with a
 * dot; rename(2) gives it its final name when it is complete, and takes that name away before it is
 * removed. So a recording with a final name is complete and can be copied. A reader may hold a lock
 * (flock(2), shared is enough) on its directory: then it is not removed. Other files in the folder
 * are left alone.
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
	uint64_t max_bytes; /* of all recordings together */
	/* The recording that after.h works on, and holds a lock on; NULL: none. For a message. */
	const char *in_work;
};

/* A place for one more recording. */
struct shelf_slot {
	char partial[PATH_MAX]; /* the directory to write it into */
	char path[PATH_MAX];	/* its final name */
	int lock_fd;		/* held while it is written */
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
 * Makes the folder if it is missing (mode 0700), checks that it can be written to, and removes
 * incomplete recordings of a mtbpf that was killed. 0, or -errno after a message and a hint.
 */
int shelf__open(struct shelf *shelf, const char *dir, size_t keep, uint64_t max_bytes);

/* Makes a slot for a recording of that process and time. 0 or -errno. Prints nothing. */
int shelf__begin(const struct shelf *shelf, const char *process, uint64_t unix_ms,
		 struct shelf_slot *slot);
/*
 * Completes the recording: syncs it to disk, removes the oldest to make room, and renames it.
 * *bytes is its size. On error the recording is removed: -EFBIG if it exceeds max_bytes alone, or
 * another -errno. Closes the slot. Prints nothing.
 */
int shelf__finish(const struct shelf *shelf, struct shelf_slot *slot, uint64_t *bytes);
/* Removes the incomplete recording and closes the slot. */
void shelf__abandon(struct shelf_slot *slot);

/* Lists the recordings; call shelf_content__fini(). 0 or -errno. */
int shelf__look(const struct shelf *shelf, struct shelf_content *content);
void shelf_content__fini(struct shelf_content *content);

#endif
