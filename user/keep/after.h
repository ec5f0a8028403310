/* SPDX-License-Identifier: MIT */
/*
 * The work on each recording once it is whole: its summary is made, and then the user's command
 * runs with its path. One recording at a time, by a process of its own, so that no capture
 * waits for it.
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

/* Recordings that may wait for their turn; later ones count as failed. */
#define AFTER_QUEUE_MAX 64
/* Default time limit of the summary and the command together. */
#define AFTER_TIMEOUT_NS 60000000000ull

struct after {
	const struct keep_options *options;
	char queue[AFTER_QUEUE_MAX][PATH_MAX];
	size_t n; /* that wait; the first is being worked on if pid is set */
	pid_t pid;
	int from; /* the causes come from there */
	uint64_t until_ns;
};

void after__init(struct after *after, const struct keep_options *options);
/* The recording is whole. What fails is counted in m, and said. */
void after__add(struct after *after, const char *path, struct metrics *m);
/* Starts the next if the current one is done: call it often. True if one was done. */
bool after__look(struct after *after, struct metrics *m);
/* The recording that is being worked on; NULL: none. */
const char *after__current(const struct after *after);
/* Waits for what is left, as long as one recording may take; the rest has failed. */
void after__end(struct after *after, struct metrics *m);

#endif
