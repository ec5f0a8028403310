/* SPDX-License-Identifier: MIT */
/* The run that a segment goes on with. */
#ifndef MTBPF_STACK_STITCH_SEARCH_H
#define MTBPF_STACK_STITCH_SEARCH_H

#include "stack/stitch/stitch.h"

static inline struct held_stack stitched__stack(const struct stitched *end)
{
	return (struct held_stack){end->stack.v, end->stack.n};
}

/* What lies between it and a segment that begins behind such a seam. */
static inline enum seam stitched__seam(const struct stitched *end, enum seam seam)
{
	return end->is_old ? SEAM_LONG : seam;
}

/*
 * The place among stitcher->ends, counted from 1, of the run that a segment goes on with which
 * begins like that, and how it lies on it. 0: there is none, or it may be one of several.
 */
size_t stitcher__search(const struct stitcher *stitcher, const struct beginning *begin,
			struct fit *fit);

#endif
