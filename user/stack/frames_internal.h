/* SPDX-License-Identifier: MIT */
/* Between the frames that run and the tree that they become. */
#ifndef MTBPF_STACK_FRAMES_INTERNAL_H
#define MTBPF_STACK_FRAMES_INTERNAL_H

#include "stack/frames.h"

#define ROOT_NONE UINT32_MAX
/* What frame__id() marks roots with. */
#define ROOT_BIT (1u << 31)

/*
 * Places left free before the first call: as many late roots find room without moving all calls
 * away from it. A tree has a few.
 */
#define FRAMES_ROOM 1024

/* Makes room for one more call. 0 or -ENOMEM. */
int frames__grow(struct frames *frames);

/* The top frame, which is no root, has ended; its call is in its place. */
void frames__tell(struct frames *frames, struct frame *frame);

/* What frames__finish() has to find out, and what it does with it. */

/* A call of a leap: the index that it gets in the tree goes to *index. */
struct wanted {
	uint32_t place; /* UINT32_MAX, behind the last: none */
	uint32_t *index;
};

/* Ascending by place, in memory that the caller frees; NULL: no memory. */
struct wanted *frames__list_wanted(struct frames *frames);
/* Where the wanted ones and the roots are is known. */
void frames__hand_over_leaps(struct frames *frames, struct call_tree *tree);

/* The segment's frames are about to end. goes_on: they may run on in the next one. */
void frames__hold(struct frames *frames, uint64_t time_ns, bool goes_on);
/* The segment has ended. */
void frames__stitch(struct frames *frames, const struct part *segment);

#endif
