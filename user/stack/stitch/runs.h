/* SPDX-License-Identifier: MIT */
/* Runs of segments that hang together, and where they lie on one another. */
#ifndef MTBPF_STACK_STITCH_RUNS_H
#define MTBPF_STACK_STITCH_RUNS_H

#include "stack/stitch/stitch.h"

/* The last joint's segment, which begins so, is the first of a new run. Its index; RUN_NONE: no
 * memory. */
uint32_t runs__begin(struct stitcher *stitcher, struct held_stack begin);

/* A segment of the run shows these under all of it: they have called `first`. 0 or -ENOMEM. */
int runs__learn_callers(struct run *run, struct held_stack callers, const struct held *first);

/* Whether the run, with its callers, began on frames of that end, or has shown callers of these. */
bool runs__fits(struct stitcher *stitcher, const struct stitched *end, const struct run *run,
		enum seam seam, struct fit *on);

/* After that: the n outermost callers of `from` are those of `to`, on which it lies. 0 or -ENOMEM.
 */
int runs__hand_callers(struct stitcher *stitcher, struct run *from, struct run *to, size_t n);

/* It began with so many frames of the run `outer`, the lowest of which lies at `depth` on that. */
void runs__place(struct stitcher *stitcher, struct run *run, uint32_t outer, int64_t depth,
		 size_t n_joined);

/*
 * A segment goes on with frames of the end, of whose stack the first `left` ran all the time: runs
 * since then lie on these, or on others of it: behind a leap on the innermost, as that has left it.
 * 0 or -ENOMEM.
 */
int runs__place_since(struct stitcher *stitcher, const struct joint *joint, int64_t base,
		      struct held_stack stack, size_t left, enum seam seam);

/*
 * The last segment but one, which began with a run's first frames, was left for the frame that lies
 * so far below: its run, of which nothing else is known, lies at that distance on the stack's frame
 * `taker`, whose depth that is. 0 or -ENOMEM.
 */
int runs__place_at_distance(struct stitcher *stitcher, const struct joint *joint, int64_t depth,
			    struct held_stack stack, size_t taker, size_t distance);

/* n frames lie between all of the run and its caller to be, in which an exception landed. 0 or
 * -ENOMEM. */
int runs__hide(const struct stitcher *stitcher, struct run *run, const struct held *caller,
	       size_t n);

/* What is known of the first frame's return elsewhere; of a segment's own it is not known yet. */
void held__inherit_return(struct held *held, const struct held *from);

#endif
