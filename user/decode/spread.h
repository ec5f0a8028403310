/* SPDX-License-Identifier: MIT */
/* Times for branches that the trace gives none of their own, before they come to the stack. */
#ifndef MTBPF_DECODE_SPREAD_H
#define MTBPF_DECODE_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/branch.h"
#include "util/vec.h"

/*
 * Intel PT tells the time now and then: branches in between have the time that was told last. The
 * first of such a run keeps it. The others are spread up to the next known time, as the
 * instructions between them are: so that calls have a length, and none a wrong order.
 *
 * Where the thread left user code meanwhile, that took some of the time: its instructions are taken
 * to have been as fast as they were in all. Nothing moves behind a hit. Gaps stay where they are,
 * and so do runs of more than SPREAD_MAX branches, and those of which no end is known. The order is
 * kept: where there are more branches than nanoseconds, some still share one.
 */
#define SPREAD_MAX 65536

struct spread {
	const uint64_t *hits; /* times of the thread's hits; ascending */
	size_t n_hits;	      /* that lie ahead */

	bool by_branches; /* how many instructions lie between them is not known */
	uint64_t now_ns;  /* of the run */
	uint64_t insns;	  /* since its first branch; by_branches: branches */
	bool is_outside;  /* left user code since then */
	bool is_long;	  /* more than can be held */
	bool has_begun;	  /* by_branches: there was nothing but a begin */
	/*
	 * Those that wait for the end of their run: of earlier batches, and behind them the n_new
	 * from `v` on.
	 */
	VEC(struct branch) held, was_held; /* was_held: their times are known by now */
	struct branch *v;
	size_t n_new;
	uint32_t n_held; /* branches among them */
	/* Where the thread stayed in user code, from one known time to the next. */
	uint64_t known_ns, known_insns;
};

/* The hits must outlive it. */
void spread__init(struct spread *spread, const uint64_t *hits, size_t n_hits);
void spread__fini(struct spread *spread);
#define SPREAD_BATCHES 2
/*
 * ready[0] and behind it ready[1], until the next call: those whose times are known by now, of
 * those from before and of these, which get their times where they lie; entries stay in their
 * places. Times ascend. What stands before an ENTRY_MAP is ready with it. 0 or -ENOMEM.
 */
int spread__take(struct spread *spread, struct branch *v, size_t n,
		 struct branch_batch ready[static SPREAD_BATCHES]);
/* There are no more: *ready is the rest. */
void spread__finish(struct spread *spread, struct branch_batch *ready);

#endif
