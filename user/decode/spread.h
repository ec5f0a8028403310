/* SPDX-License-Identifier: MIT */
/* Assigns times to branches between two timing packets, before they reach the stack. */
#ifndef MTBPF_DECODE_SPREAD_H
#define MTBPF_DECODE_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/branch.h"
#include "util/vec.h"

/*
 * Intel PT tells the time only now and then; branches in between have the last known time. Branches
 * of the same time form a run (docs/dev/glossary.md has another one: TNT packets with a TIP). The
 * first keeps its time. The others are spread up to the next known time, in proportion to the
 * instructions between them, so that calls have a length and their order is right.
 *
 * If the thread left user code meanwhile, that took some of the time: its instructions are assumed
 * to have been as fast as on average. Nothing moves past a hit. Gaps keep their times, and so do
 * runs of more than SPREAD_MAX branches, and runs whose end is unknown. The order is kept: if there
 * are more branches than nanoseconds, some still share a time.
 */
#define SPREAD_MAX 65536

struct spread {
	const uint64_t *hits; /* times of the thread's hits; ascending */
	size_t n_hits;	      /* number of hits that lie ahead, from hits[0] on */

	bool by_branches; /* instruction counts are unknown: the time is spread by branches */
	uint64_t now_ns;  /* the time of all branches of the run */
	uint64_t insns;	  /* since the run's first branch; by_branches: branches instead */
	bool is_outside;  /* the thread left user code in the run */
	bool is_long;	  /* the run has more than SPREAD_MAX branches, which keep their time */
	bool has_begun;	  /* by_branches: the run is a single BRANCH_BEGIN so far */
	/*
	 * Branches that wait for the end of their run: `held` is from earlier batches; the n_new
	 * from `v` on come after them.
	 */
	VEC(struct branch) held, was_held; /* was_held: their times are known by now */
	struct branch *v;
	size_t n_new;
	uint32_t n_held; /* how many branches wait, not counting entries */
	/* Time that the thread spent in user code, from one known time to the next. */
	uint64_t known_ns, known_insns;
};

/* The hits must outlive it. */
void spread__init(struct spread *spread, const uint64_t *hits, size_t n_hits);
void spread__fini(struct spread *spread);
#define SPREAD_BATCHES 2
/*
 * Returns the branches whose times are known now: ready[0], from earlier batches, and after them
 * ready[1], a part of `v` that is changed in place. Both are valid until the next call; entries
 * keep their places. Times ascend. Everything before an ENTRY_MAP is ready with it. 0 or -ENOMEM.
 */
int spread__take(struct spread *spread, struct branch *v, size_t n,
		 struct branch_batch ready[static SPREAD_BATCHES]);
/* Call after the last branch: *ready is the rest. */
void spread__finish(struct spread *spread, struct branch_batch *ready);

#endif
