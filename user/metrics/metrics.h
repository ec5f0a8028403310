/* SPDX-License-Identifier: MIT */
/* What a capture that runs for weeks tells of itself, as Prometheus' text. */
#ifndef MTBPF_METRICS_METRICS_H
#define MTBPF_METRICS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "trigger/trigger.h"

/* Why a trigger left no recording. */
enum metrics_skipped {
	SKIPPED_RATE,	/* as many as an hour may have were made */
	SKIPPED_LIMITS, /* -after, -min-interval, -skip */
	SKIPPED_BUSY,	/* another one was just being taken */
	SKIPPED_SIZE,	/* larger than all recordings together may be */
	SKIPPED_DISK,	/* it could not be written */
	N_SKIPPED
};

/* What is missing of what was to be recorded. */
enum metrics_lost {
	LOST_TRIGGERS, /* the trigger's ring buffer was full */
	LOST_TRACE,    /* stretches of a thread's trace, by the kernel's or the CPU's word */
	LOST_RECORDS,  /* of mappings, threads and samples */
	N_LOST
};

/* Since the program began, over all targets that it has had; sizes are of now. */
struct metrics {
	struct mt_stats stats;
	bool of_durations;     /* what stats has; else delays */
	uint64_t threshold_ns; /* UINT64_MAX: not learned yet */
	bool attached;
	uint64_t attaches;
	uint64_t captures, requests; /* by a trigger, by SIGUSR1 */
	uint64_t skipped[N_SKIPPED], lost[N_LOST];
	uint64_t recordings, recordings_bytes;
	uint64_t newest_unix_ms; /* recording; 0: none */
};

/* The text, freed by the caller; NULL where memory ran out. */
char *metrics__print(const struct metrics *metrics);

#endif
