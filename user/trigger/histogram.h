/* SPDX-License-Identifier: MIT */
/* The BPF programs' counters and histogram: the range of each bucket, and percentiles. */
#ifndef MTBPF_TRIGGER_HISTOGRAM_H
#define MTBPF_TRIGGER_HISTOGRAM_H

#include <stdint.h>

#include "mtbpf_shared.h"

/* Bucket b of the coarse histogram counts values in [2^b, 2^(b+1)) ns; bucket 0 also 0. */
#define MT_HIST_BUCKETS MT_HIST_OCTAVES

/* The counters of all CPUs, added up. */
struct mt_stats {
	uint64_t hits;	     /* of the target */
	uint64_t triggers;   /* hits and stalls that triggered, including the dropped ones */
	uint64_t dropped;    /* triggers lost: the ring buffer was full */
	uint64_t unarmed;    /* passed the threshold while not armed, or began before the arming */
	uint64_t let_pass;   /* passed the threshold while armed, but a limit held them back */
	uint64_t unmeasured; /* delay or duration unknown: no room, too deep, or interrupt */
	uint64_t stalls;     /* with count_only: stalls of at least limits.stall_thresh_ns */
	uint64_t evicted;    /* with by_key: requests evicted from the full map */
	uint64_t restarted;  /* with by_key: requests that began again before they ended */
	uint64_t keyless;    /* with by_key: hits whose key could not be read */
	uint64_t missed;     /* runs of BPF programs that the kernel skipped: recursion_misses */
	uint64_t max_ns;     /* largest delay or duration so far */
	uint64_t sum_ns;     /* sum of all delays or durations */
	uint64_t hist[MT_HIST_BUCKETS];
	uint64_t fine[MT_FINE_BUCKETS]; /* the same values in finer buckets: mtbpf_shared.h */
};

/* The least value of a bucket, in ns; for MT_FINE_BUCKETS the end of the last bucket. */
uint64_t histogram__start(int bucket);
/* floor(log2) of the bucket's values; 0 for the value 0. */
int histogram__octave(int bucket);

/*
 * The value in ns at a percentile (0-100) of the counts, interpolated inside its bucket; 0 if all
 * counts are 0.
 */
double histogram__percentile(const double counts[static MT_FINE_BUCKETS], double percent);

/* Adds the counters of one to those of another. */
void mt_stats__add(struct mt_stats *sum, const struct mt_stats *stats);
/* The value in ns at a percentile (0-100), interpolated inside its bucket; 0 without values. */
uint64_t mt_stats__percentile(const struct mt_stats *stats, double percent);
/*
 * A threshold between ordinary values and a few outliers: the middle of the longest run of empty
 * octaves, at least three, above which is at most a tenth of the values; *above is their number. 0:
 * there is no such run.
 */
uint64_t mt_stats__gap(const struct mt_stats *stats, uint64_t *above);

/*
 * Learns a percentile from the BPF program's histogram as the threshold, and keeps it current. The
 * weight of old values halves each minute, while enough values remain.
 */

struct learner {
	double percent;
	uint64_t needed;		/* values needed for a threshold */
	uint64_t learned;		/* values so far */
	double counts[MT_FINE_BUCKETS]; /* counts of values; older values weigh less */
	uint64_t last[MT_FINE_BUCKETS]; /* the histogram at the last update */
};

void learner__init(struct learner *learner, double percent);

/*
 * Adds the values counted since the last update, elapsed_ns ago. Returns the threshold in ns, or 0
 * if there were not enough values yet.
 */
uint64_t learner__update(struct learner *learner, const struct mt_stats *stats,
			 uint64_t elapsed_ns);

#endif
