/* SPDX-License-Identifier: MIT */
/*
 * A percentile as a threshold: learned from the histogram that the BPF program fills, and kept
 * current. What was counted long ago counts less, by half each minute, as far as there is enough.
 */
#ifndef MTBPF_TRIGGER_LEARNER_H
#define MTBPF_TRIGGER_LEARNER_H

#include <stdint.h>

#include "trigger/trigger.h"

struct learner {
	double percent;
	uint64_t needed;		/* values, until it is known */
	uint64_t learned;		/* values so far, all of them */
	double counts[MT_FINE_BUCKETS]; /* what they count now */
	uint64_t last[MT_FINE_BUCKETS]; /* of the histogram, when it was looked at last */
};

void learner__init(struct learner *learner, double percent);

/*
 * Takes in what was counted since the last time, elapsed_ns ago. The threshold, or 0 where there
 * were not enough values yet.
 */
uint64_t learner__update(struct learner *learner, const struct mt_stats *stats,
			 uint64_t elapsed_ns);

#endif
