/* SPDX-License-Identifier: MIT */
/* Times for events that the trace gives none of their own. */
#ifndef MTBPF_STACK_SPREAD_TIMES_H
#define MTBPF_STACK_SPREAD_TIMES_H

#include "stack/call_tree.h"

struct known_times {
	uint64_t step_ns; /* a clock that runs shows within that time; UINT64_MAX: not known when */
	const uint64_t *fixed; /* of what else is known of the thread (hits); ascending */
	size_t n_fixed;
};

/*
 * Intel PT tells the time now and then; events in between have the time that was told last. Of such
 * a run the first keeps its time, and the others are spread evenly up to the next known time, or
 * that of the next step where this is earlier. What one branch did (frames cut short together, a
 * tail call) stays together. Gaps stay where they are, and so does the last run. The order is kept:
 * where there are more events than nanoseconds, some still share one.
 */
int call_tree__spread_times(struct call_tree *tree, const struct known_times *known);

#endif
