/* SPDX-License-Identifier: MIT */
/*
 * What is done with each recording once it is whole: its summary is made, and then the user's
 * command runs with its path. One recording at a time, by a process of its own, so that no capture
 * waits for it.
 */
#ifndef MTBPF_KEEP_AFTER_H
#define MTBPF_KEEP_AFTER_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "keep/keep_options.h"
#include "metrics/metrics.h"

/* So many recordings may wait for their turn; what comes then has failed. */
#define AFTER_QUEUE_MAX 64
/* So long the summary and the command may take together, unless told otherwise. */
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
/* Looks whether it is done, and begins with the next: call it now and then. */
void after__look(struct after *after, struct metrics *m);
/* Waits for what is left, as long as one recording may take; the rest has failed. */
void after__end(struct after *after, struct metrics *m);

#endif
