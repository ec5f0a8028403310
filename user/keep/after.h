/* SPDX-License-Identifier: MIT */
/*
 * Processes each complete recording: writes its summary, then runs the user's command with its
 * path. A child process does this, for one recording at a time, so that captures do not wait for
 * it.
 */
#ifndef MTBPF_KEEP_AFTER_H
#define MTBPF_KEEP_AFTER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "keep/keep_options.h"
#include "metrics/metrics.h"

/*
 * Recordings in the queue at most; further ones are not processed, and a command for them counts as
 * failed.
 */
#define AFTER_QUEUE_MAX 64

struct after {
	const struct keep_options *options;
	char queue[AFTER_QUEUE_MAX][PATH_MAX];
	size_t n; /* in the queue; the first is being processed if pid is set */
	pid_t pid;
	int from; /* the pipe from which the causes are read */
	uint64_t until_ns;
};

void after__init(struct after *after, const struct keep_options *options);
/* Adds a complete recording to the queue. Failures are counted in m and printed. */
void after__add(struct after *after, const char *path, struct metrics *m);
/*
 * Ends the processing of a recording if it is done or takes too long, and starts that of the next
 * one. Returns true if one has ended. Call it often.
 */
bool after__look(struct after *after, struct metrics *m);
/* The recording that is being processed; NULL: none. */
const char *after__current(const struct after *after);
/* Waits for the queue, at most as long as one recording may take; the rest counts as failed. */
void after__end(struct after *after, struct metrics *m);

#endif
