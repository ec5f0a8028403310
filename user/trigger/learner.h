/* SPDX-License-Identifier: MIT */
/*
 * Learns a percentile from the BPF program's histogram as the threshold, and keeps it current. The
 * weight of old values halves each minute, while enough values remain.
 */
#ifndef MTBPF_TRIGGER_LEARNER_H
#define MTBPF_TRIGGER_LEARNER_H

#include <stdint.h>

#include "trigger/trigger.h"

struct learner {
	double percent;
	uint64_t needed;		/* values needed for a threshold */
	uint64_t learned;		/* values so far */
	double counts[MT_FINE_BUCKETS]; /* weighted counts */
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
