/* SPDX-License-Identifier: MIT */
/* Times for branches that the trace gives none of their own, before they come to the stack. */
#ifndef MTBPF_STACK_SPREAD_H
#define MTBPF_STACK_SPREAD_H

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
	VEC(struct branch) all;
	size_t ready;	 /* the first of them have their times; the others wait */
	uint32_t n_held; /* branches among those that wait */
	/* Where the thread stayed in user code, from one known time to the next. */
	uint64_t known_ns, known_insns;
};

/* The hits must outlive it. */
void spread__init(struct spread *spread, const uint64_t *hits, size_t n_hits);
void spread__fini(struct spread *spread);
/*
 * *ready, until the next call: those whose times are known by now, of these and of those from
 * before, their times ascending; entries stay in their places. What stands before an ENTRY_MAP is
 * ready with it. 0 or -ENOMEM.
 */
int spread__take(struct spread *spread, const struct branch *v, size_t n,
		 struct branch_batch *ready);
/* There are no more: *ready is the rest. */
void spread__finish(struct spread *spread, struct branch_batch *ready);

#endif
