/* SPDX-License-Identifier: MIT */
/* The line that is alive while mtbpf waits: hits, their rate, delays against the threshold. */
#ifndef MTBPF_VIEW_STATUS_H
#define MTBPF_VIEW_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mtbpf_shared.h"

struct status_view {
	uint64_t delay_ns[3]; /* p50, p99, max */
	uint64_t hits;
	uint64_t let_pass; /* slow enough, but not within the limits */
	uint64_t stalls;   /* that were counted */
	double hits_per_s;
	uint64_t threshold_ns;
	double percent;		  /* 0: the threshold was given; else it is this percentile, ... */
	uint64_t learned, needed; /* ... of so many values, or not known before there are enough */
	const char *cost;	  /* what it costs the target, for people; NULL: not known */
};

#define STATUS_TEXT_SIZE 512
/*
 * "1204 hits  52.1/s  p50 61.0 ms  p99 80.0 ms  max 83.0 ms  threshold 400 ms", cut where it does
 * not fit; of a percentile "threshold 81.0 ms (p99.9 of 12045)", and before that "learning p99.9:
 * 1203 of 10000". Returns buf.
 */
const char *status__format(char buf[static STATUS_TEXT_SIZE], const struct status_view *view);

/* Redraws it in place on stderr, if that is a terminal; else does nothing. */
void status__show(const struct status_view *view);
/* Nothing is left of it. */
void status__end(void);

#endif
