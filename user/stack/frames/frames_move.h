/* SPDX-License-Identifier: MIT */
/*
 * What was taken for one stack's may turn out to be another's, by a return to where only that one
 * returns: all that was done since is moved there.
 */
#ifndef MTBPF_STACK_FRAMES_FRAMES_MOVE_H
#define MTBPF_STACK_FRAMES_FRAMES_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/frames/frames.h"

/* How far back frames that end can be had back. */
#define MARK_DEPTH 512

/* Frames as they were when their switch came back. */
struct frames_mark {
	uint64_t time_ns;
	uint64_t waits_at; /* where they went on */
	/* On the one that goes on: the switch function's, and the slice of the wait, if any. */
	size_t n_above;
	VEC(struct frame) top; /* the uppermost of those open */
	size_t n_open, n_calls, n_parts, n_roots, n_leaps;
	long level;
};

void frames_mark__fini(struct frames_mark *mark);

/* The frames as they are, about to go on at waits_at. 0 or -ENOMEM. */
int frames_mark__set(struct frames_mark *mark, const struct frames *frames, uint64_t time_ns,
		     uint64_t waits_at, size_t n_above);

/* But for frames that have ended, and what they called, all is as it was at the mark. */
bool frames_mark__is_whole(const struct frames_mark *mark, const struct frames *from);

/*
 * `from` has run since the mark, and its top frame returns to ip (0: nobody knows where that is).
 * Could `to`, which waits, have run instead? Then frames have returned as its frames would have,
 * and so does this one.
 */
bool frames_mark__fits(const struct frames_mark *mark, const struct frames *from,
		       const struct frames *to, uint64_t ip);

/*
 * No frame that is known fits: `to` is new, and its frames are those that have returned, and the
 * one that does. False where more has happened since the mark, or they lie too far down.
 */
bool frames_mark__begin_like(const struct frames_mark *mark, const struct frames *from,
			     struct frames *to);

/* `to` waits no more: the frame that it goes on in is its top. */
void frames_mark__go_on(const struct frames_mark *mark, struct frames *to);

/*
 * `to`, which it fits, or which begins like it, did what `from` did. `from` is as it was at the
 * mark. 0 or -ENOMEM.
 */
int frames_mark__move(const struct frames_mark *mark, struct frames *from, struct frames *to);

#endif
