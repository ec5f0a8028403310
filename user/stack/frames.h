/* SPDX-License-Identifier: MIT */
/*
 * The frames of one thread, as nodes linked to their parents under a root sentinel. Nothing is
 * ever moved: a caller discovered late takes the sentinel's place, under everything seen before,
 * and a new sentinel goes below it. Within a segment there may be parts whose callers are found in
 * the same way: a nested sentinel stands on the frame that the part is to come back to.
 */
#ifndef MTBPF_STACK_FRAMES_H
#define MTBPF_STACK_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/call_tree.h"
#include "util/vec.h"

#define FRAME_NONE UINT32_MAX

struct frame {
	struct call call; /* call.parent is not used before frames__finish() */
	uint32_t parent;  /* FRAME_NONE for a sentinel */
	bool is_sentinel;
	uint64_t return_ip; /* where its RET will go; 0: not known */
	uint64_t resume_ip; /* signal and kernel frames: where the interrupted code goes on */
};

struct frames {
	VEC(struct frame) nodes;
	uint32_t top; /* the running frame, or the sentinel of an empty segment */
	uint32_t sentinel;
	uint64_t start_ns; /* of the segment; a nested part's is its sentinel's */
	long level;	   /* pushes less pops */
	bool failed;	   /* out of memory: nothing more is added */
};

void frames__init(struct frames *frames);
void frames__fini(struct frames *frames);

/* A new segment: a sentinel of its own, no frames. What was open must have been closed. */
void frames__begin_segment(struct frames *frames, uint64_t time_ns);

/* A part of the segment, on the running frame, that begins without frames. */
void frames__begin_nested(struct frames *frames, uint64_t time_ns);
/* Where a nested part has no frames: the one it stands on. Else NULL. */
struct frame *frames__below(const struct frames *frames);

/* The running frame, or NULL where the segment has none yet. */
struct frame *frames__top(const struct frames *frames);
/* Its caller, or the frame that its nested part stands on; or NULL. */
struct frame *frames__parent(const struct frames *frames, const struct frame *frame);

/* Enters a frame: `call`'s start, function, kind and flags are the caller's to fill. */
struct frame *frames__push(struct frames *frames, const struct call *call);
/* The top frame ends. */
void frames__pop(struct frames *frames, uint64_t time_ns, uint8_t flags);
/* Frames end with these flags, and nested parts, until `frame` is the top. */
void frames__unwind_to(struct frames *frames, const struct frame *frame, uint64_t time_ns,
		       uint8_t flags);
/* The same: without a return. */
void frames__pop_to(struct frames *frames, const struct frame *frame, uint64_t time_ns);
/* All frames end: the segment is over. */
void frames__close_all(struct frames *frames, uint64_t time_ns, uint8_t flags);

/*
 * The segment, or the nested part, turns out to have run in `function` all along, below every frame
 * seen so far. It becomes the top. Only when the segment's or the part's frames have all ended.
 */
struct frame *frames__emplace_root(struct frames *frames, const struct function *function,
				   uint64_t ip);

/* A slice beside all segments, for a gap. */
void frames__add_gap(struct frames *frames, uint64_t start_ns, uint64_t end_ns, uint8_t reason);

/* Writes all frames into the tree in pre-order. 0 or -ENOMEM. */
int frames__finish(struct frames *frames, struct call_tree *tree);

#endif
