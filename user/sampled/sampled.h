/* SPDX-License-Identifier: MIT */
/*
 * Stacks of moments to call trees. Not in user/stack: that follows each call and return, and knows
 * where a frame begins; here a frame is what several stacks in a row have in common, and most of
 * its edges lie between two of them.
 */
#ifndef MTBPF_SAMPLED_SAMPLED_H
#define MTBPF_SAMPLED_SAMPLED_H

#include <stdint.h>

#include "capture/recording/recording.h"
#include "decode/images.h"
#include "stack/call_tree.h"

struct meter;

struct sampled_totals {
	uint64_t first_ns, last_ns; /* 0 where there is nothing */
	uint64_t samples, switches;
	struct meter *meter; /* the caller's: of what is read, or NULL */
};

/* Takes over the tree, on failure too. Non-zero stops, and is returned. */
typedef int (*sampled_taker)(void *ctx, struct call_tree *tree);

/*
 * The tree of each thread, by tid. All calls have CALL_SAMPLED. Exact are: where the probed
 * function was entered and returned, as far as the recording's entries tell, and when a thread was
 * off its CPU; every other edge is CALL_INFERRED_START or _END. 0; -ENOMEM; or what `take`
 * returned.
 */
int sampled__trees(const struct recording *rec, struct images *images, sampled_taker take,
		   void *ctx, struct sampled_totals *totals);

#endif
