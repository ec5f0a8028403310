/* SPDX-License-Identifier: MIT */
/*
 * Statistics of the hits while a session waits: the status line, and the threshold if it is a
 * percentile.
 */
#ifndef MTBPF_SESSION_PROGRESS_H
#define MTBPF_SESSION_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mtbpf_shared.h"
#include "session/capture_options.h"
#include "trigger/histogram.h"
#include "trigger/trigger.h"
#include "util/units.h"

struct progress {
	bool has_terms;	       /* -if is given: hits that do not match are not counted */
	uint64_t threshold_ns; /* current; 0: none, UINT64_MAX: not learned yet */
	struct learner learner;
	struct mt_stats last_stats;
	/* Time of progress__init(); of the last progress__look(), at first the same. */
	uint64_t began_ns, last_ns;
};

void progress__init(struct progress *progress, const struct capture_options *options);

/* "10.0 ms", or "p99.9". */
void progress__format_threshold(const struct progress *progress,
				char text[static THRESHOLD_TEXT_SIZE + UNITS_TEXT_SIZE]);

/* Call once a second: updates a percentile threshold, also in the trigger, and the status line. */
void progress__look(struct progress *progress, struct trigger *trigger, uint64_t now_ns,
		    const char *cost);

/*
 * Prints one line with the statistics of the hits, or the reason why the function was not hit.
 * `name` is the trigger's. Returns false if nothing was hit, and -if is not the reason.
 */
bool progress__say(struct progress *progress, const struct trigger *trigger, const char *name);

/* stats: the counts so far. hits: the hits that came within the last span_ns. */
struct status_view hit_status__view(const struct mt_stats *stats, uint64_t hits, uint64_t span_ns);

/* The status line while mtbpf waits: hits, their rate, delays and the threshold. */

struct status_view {
	uint64_t delay_ns[3]; /* p50, p99, max */
	uint64_t hits;
	uint64_t let_pass; /* passed the threshold, but a limit (mt_limits) held the hit back */
	uint64_t stalls;   /* stalls that `watch` has counted: it does not trigger */
	double hits_per_s;
	uint64_t threshold_ns;
	double percent;		  /* the threshold is this percentile; 0: it was given in ns */
	uint64_t learned, needed; /* values so far, and values needed for the percentile */
	const char *cost;	  /* the cost for the target as text; NULL: not known */
};

#define STATUS_TEXT_SIZE 512
/*
 * Formats "1204 hits  52.1/s  p50 61.0 ms  p99 80.0 ms  max 83.0 ms  threshold 400 ms", truncated
 * if it does not fit; for a percentile "threshold 81.0 ms (p99.9 of 12045)", and before it is
 * learned "learning p99.9: 1203 of 10000". Returns buf.
 */
const char *status__format(char buf[static STATUS_TEXT_SIZE], const struct status_view *view);

/* Redraws the line in place on stderr, until log__end_line(); does nothing if that is not a
 * terminal. */
void status__show(const struct status_view *view);

#endif
