/* SPDX-License-Identifier: MIT */
/* Times for branches that the trace gives none of their own, on their way to the stack. */
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
	branch_fn fn; /* who takes them */
	void *ctx;
	const uint64_t *hits; /* times of the thread's hits; ascending */
	size_t n_hits;	      /* that lie ahead */

	bool by_branches; /* how many instructions lie between them is not known */
	uint64_t now_ns;  /* of the run */
	uint64_t insns;	  /* since its first branch; by_branches: branches */
	bool is_outside;  /* left user code since then */
	bool is_long;	  /* more than can be held */
	bool has_begun;	  /* by_branches: there was nothing but a begin */
	VEC(struct branch) held;
	/* Where the thread stayed in user code, from one known time to the next. */
	uint64_t known_ns, known_insns;
};

/* fn and ctx take the branches, their times ascending. The hits must outlive it. */
void spread__init(struct spread *spread, branch_fn fn, void *ctx, const uint64_t *hits,
		  size_t n_hits);
void spread__fini(struct spread *spread);
/* A branch_fn, with the spread as ctx. -ENOMEM, or what fn returned. */
int spread__branch(void *spread, const struct branch *branch);
/* What is held has to be taken now, at time_ns, n_insns behind the last. As spread__branch(). */
int spread__settle(struct spread *spread, uint64_t time_ns, uint32_t n_insns);
/* There are no more. */
int spread__finish(struct spread *spread);

#endif
