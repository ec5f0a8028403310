/* SPDX-License-Identifier: MIT */
/* The metrics of record -dir in Prometheus' text format. */
#ifndef MTBPF_METRICS_METRICS_H
#define MTBPF_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trigger/trigger.h"

/* Why a trigger left no recording. */
enum metrics_skipped {
	SKIPPED_RATE,	/* -max-per-hour was used up */
	SKIPPED_LIMITS, /* -after, -min-interval, -skip */
	SKIPPED_BUSY,	/* another capture was being taken */
	SKIPPED_SIZE,	/* larger than -max-size */
	SKIPPED_DISK,	/* it could not be written */
	N_SKIPPED
};

/* Kinds of lost data. */
enum metrics_lost {
	LOST_TRIGGERS, /* the trigger's ring buffer was full */
	LOST_TRACE,    /* gaps in a thread's trace that the kernel or the CPU has reported */
	LOST_RECORDS,  /* records of mappings, threads and samples */
	N_LOST
};

/* Results of the -on-capture command. */
enum metrics_on_capture { ON_CAPTURE_OK, ON_CAPTURE_FAILED, N_ON_CAPTURE };

/* What a slow iteration was slow for, and by how much. */
struct metrics_cause {
	char kind[16];	   /* "blocked" */
	char function[96]; /* the innermost; "": none */
	uint64_t ns, n;	   /* n: captures */
};

/* So many causes have a series each; what comes then is counted as "other". */
#define METRICS_CAUSES_MAX 20

/* Counts since mtbpf started, over all targets; sizes are current. */
struct metrics {
	struct mt_stats stats;
	bool of_durations;     /* stats has durations; otherwise delays */
	uint64_t threshold_ns; /* UINT64_MAX: not learned yet */
	bool attached;
	uint64_t attaches;
	uint64_t captures, requests; /* by a trigger, by SIGUSR1 */
	uint64_t skipped[N_SKIPPED], lost[N_LOST];
	uint64_t on_capture[N_ON_CAPTURE];
	struct metrics_cause causes[METRICS_CAUSES_MAX + 1]; /* the last one: all others */
	size_t n_causes;
	uint64_t recordings, recordings_bytes;
	uint64_t newest_unix_ms; /* time of the newest recording; 0: none */
};

/* A capture's. */
void metrics__add_cause(struct metrics *metrics, const struct metrics_cause *cause);

/* Formats the metrics. The caller frees the text; NULL: out of memory. */
char *metrics__print(const struct metrics *metrics);

#endif
