/* SPDX-License-Identifier: MIT */
/*
 * A folder that keeps the newest recordings. While a recording is written, its name begins with a
 * dot. rename(2) gives it its final name when it is complete, and takes that name away before it is
 * removed: a recording with a final name is complete and can be copied. A recording is not removed
 * while a reader holds a lock (flock(2), shared is enough) on its directory. Other files in the
 * folder are left alone.
 */
#ifndef MTBPF_KEEP_FOLDER_H
#define MTBPF_KEEP_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

struct folder {
	char dir[PATH_MAX];
	size_t keep;	    /* the most recordings that are kept */
	uint64_t max_bytes; /* the most bytes of all recordings together */
	/* The recording that after.h has locked and is processing, for a message; NULL: none. */
	const char *in_work;
};

/* A place for one more recording. */
struct folder_slot {
	char partial[PATH_MAX]; /* the directory to write it into */
	char path[PATH_MAX];	/* its final name */
	int lock_fd;		/* held while it is written */
};

struct folder_item {
	char *name;
	uint64_t unix_ms;
	uint64_t bytes;
};

struct folder_content {
	VEC(struct folder_item) items; /* oldest first */
	uint64_t bytes;
};

/*
 * Makes the folder if it is missing (mode 0700), checks that it can be written to, and removes
 * incomplete recordings of a mtbpf that was killed. 0, or -errno after a message and a hint.
 */
int folder__open(struct folder *folder, const char *dir, size_t keep, uint64_t max_bytes);

/* Makes a slot for a recording of that process and time. 0 or -errno. Prints nothing. */
int folder__begin(const struct folder *folder, const char *process, uint64_t unix_ms,
		  struct folder_slot *slot);
/*
 * Completes the recording: syncs it to disk, removes the oldest to make room, and renames it.
 * *bytes is its size. On error the recording is removed: -EFBIG if it exceeds max_bytes alone, or
 * another -errno. Closes the slot. Prints only a warning for each recording that cannot be removed.
 */
int folder__finish(const struct folder *folder, struct folder_slot *slot, uint64_t *bytes);
/* Removes the incomplete recording and closes the slot. */
void folder__abandon(struct folder_slot *slot);

/* Lists the recordings; call folder_content__fini(). 0 or -errno. */
int folder__list(const struct folder *folder, struct folder_content *content);
void folder_content__fini(struct folder_content *content);

/* Names of kept recordings: NAME-2026-11-21T10:00:00.123Z.mtbpf, in UTC. */

/* Milliseconds since 1970. */
uint64_t unix_now_ms(void);

/* Formats a name; other characters of `process` than letters, digits, '-' and '.' become '_'. 0 or
 * -ENAMETOOLONG. */
int recording_name__format(char *buf, size_t size, const char *process, uint64_t unix_ms);

/* True if the file has such a name; sets its time. */
bool recording_name__parse(const char *file, uint64_t *unix_ms);

#endif
