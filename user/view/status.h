/* SPDX-License-Identifier: MIT */
/* The status line while mtbpf waits: hits, their rate, delays and the threshold. */
#ifndef MTBPF_VIEW_STATUS_H
#define MTBPF_VIEW_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mtbpf_shared.h"

struct status_view {
	uint64_t delay_ns[3]; /* p50, p99, max */
	uint64_t hits;
	uint64_t let_pass; /* passed the threshold, but not the limits */
	uint64_t stalls;   /* that were counted */
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

/* Redraws the line in place on stderr; does nothing if that is not a terminal. */
void status__show(const struct status_view *view);
/* Erases the line. */
void status__end(void);

#endif
