/* SPDX-License-Identifier: MIT */
/*
 * Calls of Go's goroutines, each known by itself from its begin to its end (-also): a track a
 * goroutine. They run on whatever thread has time for them, and others do meanwhile on the one that
 * they began on, so that they fit into no thread's stacks.
 */
#ifndef MTBPF_SAMPLED_GOROUTINES_H
#define MTBPF_SAMPLED_GOROUTINES_H

#include "sampled/sampled.h"

/* Those that were taken: their calls are not ours. */
struct thread_trees {
	struct call_tree *v;
	size_t n, cap;
};

/*
 * As sampled__trees(), of these calls only; totals has the first of their times, too. A call of
 * runtime.gopark() is time off the CPU; of the rest of a call the stacks of the thread that ran it
 * tell, as far as they show that call.
 */
int goroutines__trees(const struct recording *rec, struct images *images,
		      const struct thread_trees *threads, sampled_taker take, void *ctx,
		      struct sampled_totals *totals);

#endif
