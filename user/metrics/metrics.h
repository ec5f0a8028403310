/* SPDX-License-Identifier: MIT */
/* The metrics of record -dir, in Prometheus' text format or OpenMetrics', and their server. */
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
	LOST_TRACE,    /* gaps in a trace that the kernel or the CPU reported */
	LOST_RECORDS,  /* records of mappings, threads and samples */
	N_LOST
};

/* Results of the -on-capture command. */
enum metrics_on_capture { ON_CAPTURE_OK, ON_CAPTURE_FAILED, N_ON_CAPTURE };

/* The latest counted capture that had a trace id. */
struct metrics_exemplar {
	char trace_id[33]; /* "": none */
	uint64_t unix_ms;
	uint64_t
		ns; /* time that the capture added to the counter; unused if that counts captures */
};

/* A cause of slow iterations, with its sums. */
struct metrics_cause {
	char kind[16];	   /* "blocked" */
	char function[96]; /* the innermost; "": none */
	uint64_t ns, n;	   /* time; number of captures */
	struct metrics_exemplar exemplar;
};

/* Maximum number of causes with a series each; more causes are counted as "other". */
#define METRICS_CAUSES_MAX 20

/* Counts since mtbpf started, over all targets; sizes are current. */
struct metrics {
	struct mt_stats stats;
	bool of_durations;		 /* stats are of durations; otherwise of delays */
	enum mt_cpu_measure cpu_measure; /* the part of the time that they count */
	uint64_t threshold_ns;		 /* UINT64_MAX: not learned yet */
	bool attached;
	uint64_t attaches;
	uint64_t captures, requests;	 /* by a trigger, by SIGUSR1 */
	struct metrics_exemplar capture; /* of `captures` */
	uint64_t skipped[N_SKIPPED], lost[N_LOST];
	uint64_t on_capture[N_ON_CAPTURE];
	struct metrics_cause causes[METRICS_CAUSES_MAX + 1]; /* the last one: all others */
	size_t n_causes;
	uint64_t recordings, recordings_bytes;
	uint64_t newest_unix_ms; /* time of the newest recording; 0: none */
};

/* Counts one cause of a capture. */
void metrics__add_cause(struct metrics *metrics, const struct metrics_cause *cause);

/* Prometheus' text format 0.0.4; OpenMetrics 1.0.0, which has exemplars. */
enum metrics_format { METRICS_TEXT, METRICS_OPEN };

/* The format that an Accept header asks for; NULL: the text format. */
enum metrics_format metrics__choose_format(const char *accept);

/* Formats the metrics. The caller frees the text; NULL: out of memory. */
char *metrics__print(const struct metrics *metrics, enum metrics_format format);

struct metrics_server;

/*
 * Answers GET /metrics at an address as for listener__open(). NULL with errno after a message and a
 * hint. Block signals before the call, so that the server's thread does not receive them.
 */
struct metrics_server *metrics_server__start(const char *address);
/* Accepts NULL. */
void metrics_server__stop(struct metrics_server *server);

/* Sets the metrics to answer with. Does nothing if server is NULL. */
void metrics_server__set(struct metrics_server *server, const struct metrics *metrics);

#endif
