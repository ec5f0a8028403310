/* SPDX-License-Identifier: MIT */
/* Between the frames that run and the tree that they become. */
#ifndef MTBPF_STACK_FRAMES_INTERNAL_H
#define MTBPF_STACK_FRAMES_INTERNAL_H

#include "stack/frames.h"

#define ROOT_NONE UINT32_MAX
/* frame__id() sets this bit for roots. */
#define ROOT_BIT (1u << 31)

/*
 * Places left free before the first call: as many late roots find room without moving all calls
 * away from it. A tree has a few.
 */
#define FRAMES_ROOM 1024

/* Makes room for one more call. 0 or -ENOMEM. */
int frames__grow(struct frames *frames);

/* The top frame has ended and its call is in its place. It must not be a root. */
void frames__tell(struct frames *frames, struct frame *frame);

/* For frames__finish(): places that have to be found. */

/* A call of an unwind: its index in the tree is stored in *index. */
struct wanted {
	uint32_t place; /* UINT32_MAX, after the last place: none */
	uint32_t *index;
};

/* Ascending by place, in memory that the caller frees; NULL: no memory. */
struct wanted *frames__list_wanted(struct frames *frames);
/* To be called when the places of the wanted calls and of the roots are known. */
void frames__hand_over_unwinds(struct frames *frames, struct call_tree *tree);

/* The segment's frames are about to end. goes_on: they may run on in the next one. */
void frames__hold(struct frames *frames, uint64_t time_ns, bool goes_on);
/* The segment has ended. */
void frames__stitch(struct frames *frames, const struct part *segment);

#endif
