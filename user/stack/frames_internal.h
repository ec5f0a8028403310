/* SPDX-License-Identifier: MIT */
/* Between the frames that run and the tree that they become. */
#ifndef MTBPF_STACK_FRAMES_INTERNAL_H
#define MTBPF_STACK_FRAMES_INTERNAL_H

#include "stack/frames.h"

#define ROOT_NONE UINT32_MAX

/*
 * Places left free before the first call: as many late roots find room without moving all calls
 * away from it. A tree has a few.
 */
#define FRAMES_ROOM 1024

/* Makes room for one more call. 0 or -ENOMEM. */
int frames__grow(struct frames *frames);
/* The segment that runs, if any, and the parts in it are over. */
void frames__end_segment(struct frames *frames);

/* frames_edges.c: what the stitcher is told. */

/* The segment's frames are about to end. goes_on: they may run on in the next one. */
void frames__hold(struct frames *frames, uint64_t time_ns, bool goes_on);
/* The segment has ended. */
void frames__stitch(struct frames *frames, const struct part *segment);

#endif
