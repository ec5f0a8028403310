/* SPDX-License-Identifier: MIT */
/*
 * The frames of one thread. Running frames are on a stack. A frame that has ended is a call, in the
 * place that it was given when it began: so calls are in pre-order, and stay where they are. A
 * caller that is discovered late belongs below everything seen before: it is stored apart, and is
 * put in its place when the tree is finished. Within a segment there may be parts whose callers are
 * found in the same way; such a nested part is on top of the frame that it will return to.
 */
#ifndef MTBPF_STACK_FRAMES_H
#define MTBPF_STACK_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/call_tree.h"
#include "stack/stitch.h"
#include "util/vec.h"

#define PART_NONE UINT32_MAX

/* One that runs. */
struct frame {
	struct call call;   /* call.parent, call.depth: not before frames__finish() */
	uint64_t return_ip; /* where its RET will go; 0: not known */
	/*
	 * Signal and kernel frames: where the interrupted code goes on. Of a function that switches
	 * stacks: where this stack goes on, which its RET does not.
	 */
	uint64_t resume_ip;
	/* frames__tell(): its begin, or the latest end in it, that is not told; and that is */
	uint64_t kept_ns, told_ns;
	/* The inlined call, the outermost one, that its last callee was made in; NULL: none. */
	const struct inlined *in;
	uint32_t index;	      /* its place among the calls, or among the roots */
	uint32_t unwind : 31; /* the last that landed in it, counted from 1; 0: none */
	uint32_t is_root : 1; /* discovered late */
	uint32_t first_in; /* the first callee made in `in`; all of these are handed on together */
	bool keeps_in;	   /* they are not told before this frame is */
	bool has_told;	   /* a callee since the last one that was not told */
	bool keeps;	   /* the same: what it called, and itself */
	bool is_resolving; /* a stub's, that is binding its function */
	uint8_t slack;	   /* its RET may go up to this many bytes after return_ip as well */
	uint8_t role;	   /* enum function_role: it switches stacks; else 0 */
};

/* A RET to ip, which is not 0, may be its own. */
static inline bool frame__returns_to(const struct frame *frame, uint64_t ip)
{
	return ip - frame->return_ip <= frame->slack;
}

/* A stub of the PLT, or the resolver that it has gone through: neither is what was called. */
static inline bool frame__is_stub(const struct frame *frame)
{
	return frame->is_resolving ||
	       (frame->call.function && frame->call.function->kind == FUNCTION_PLT);
}

/* A segment, or a nested part of one. */
struct part {
	uint64_t start_ns;
	uint32_t outer;	     /* the part that it is nested in, or PART_NONE */
	uint32_t n_below;    /* frames that ran when it began */
	uint32_t depth;	     /* of its first frame, as in its call.depth */
	uint32_t first, end; /* its calls, with those of the parts in it */
	uint32_t n_roots;
	uint32_t last_root; /* of its roots; the one before is in root.before */
	/* If it is a segment: */
	uint64_t end_ns;
	enum boundary boundary; /* between the one before and it */
	struct waiting catcher; /* the frame in which the unwind to this segment landed */
	uint32_t distance;	/* below all that the one before showed; 0: not known */
};

/* Found after everything that it called. */
struct root {
	struct call call;
	uint32_t before; /* the part's root that was found before it: the one it called */
	uint32_t index;	 /* in the tree: frames__finish() */
};

/* The address after a call of setjmp(), where longjmp() may land while the frame lives. */
struct landing {
	uint64_t ip;
	size_t depth;	/* of the frame among those open */
	uint32_t index; /* of the frame, as is_root is */
	bool is_root;
	uint8_t left_by; /* enum left_by: what a call is left by that is cut by it */
	uint8_t slack;	 /* it may land up to this many bytes after ip as well */
};

struct frames {
	VEC(struct call) calls; /* behind room for the roots */
	VEC(struct frame) open;
	VEC(struct part) parts; /* in the order of their first calls */
	VEC(struct root) roots;
	VEC(struct unwind) unwinds;   /* they refer to calls by frame__id() */
	VEC(struct landing) landings; /* unwinding.c; the outer frames' first */
	struct stitcher stitcher;
	held_vec begun, held;	/* what ran at a segment's begin, and at its end */
	enum boundary boundary; /* of the segment to come */
	bool has_gap;
	uint64_t last_gap_ns; /* has_gap: where it ended */
	uint32_t part;	      /* the one that runs, or PART_NONE */
	uint32_t n_below;     /* its n_below, or 0 */
	uint32_t n_roots;     /* of the parts that run */
	uint64_t start_ns;    /* of the segment; a nested part has its own */
	long level;	      /* of the top frame: 0 where the segment began */
	bool failed;	      /* out of memory: nothing more is added */
	/* frames__tell() */
	const struct call_consumer *consumer; /* of calls before their tree; NULL: nobody */
	uint32_t n_named;		      /* calls of unwinds lie among so many */
	uint64_t ended_ns;		      /* the last call that has */
	const struct inlined *ended_in;	      /* what the last one that was kept was made in */
};

void frames__init(struct frames *frames);
void frames__fini(struct frames *frames);

/* A new segment without frames. What was open must have been closed. */
void frames__begin_segment(struct frames *frames, uint64_t time_ns);
/* One that begins on these frames. Their calls get these flags, and CALL_INFERRED_START. */
void frames__begin_with(struct frames *frames, uint64_t time_ns, struct held_stack stack,
			uint8_t flags);

/*
 * The same, after an unwind to a frame below all that the segment before it showed: `catcher`, if
 * that is known of the waiting frames. The frame is `distance` frames below the lowest of these; 0:
 * not known.
 */
void frames__begin_below(struct frames *frames, uint64_t time_ns, struct waiting catcher,
			 uint32_t distance);

/* The segment that runs, if any, and the parts in it are over. */
void frames__end_segment(struct frames *frames);
/* The same, and the next segment is not related to those before. */
void frames__forget(struct frames *frames);

/* A part of the segment, on the running frame, that begins without frames. */
void frames__begin_nested(struct frames *frames, uint64_t time_ns);
/* If a nested part has no frames: the frame that it is on top of. Otherwise NULL. */
struct frame *frames__below(const struct frames *frames);

/* The running frame; NULL if the segment, or the part, does not have one. */
static inline struct frame *frames__top(const struct frames *frames)
{
	size_t n = frames->open.n;

	return n > frames->n_below ? &frames->open.v[n - 1] : NULL;
}

/* Its caller, or the frame that its nested part is on top of; or NULL. */
struct frame *frames__parent(const struct frames *frames, const struct frame *frame);
/* The running frame is the latest of all calls, and has called nothing. */
bool frames__is_last(const struct frames *frames);

/*
 * Enters a frame: the caller fills `call`'s start, function, kind and flags. Invalidates pointers
 * to frames.
 */
struct frame *frames__push(struct frames *frames, const struct call *call);
/* The top frame ends. */
void frames__pop(struct frames *frames, uint64_t time_ns, uint8_t flags);
/* The top frame, which is the last, has never been. */
void frames__drop_last(struct frames *frames);
/*
 * Frames end with these flags, and nested parts, until `frame` is the top. NULL: all of them, and
 * the segment is over. With CALL_INFERRED_END they may run on in the next one.
 */
void frames__pop_to(struct frames *frames, const struct frame *frame, uint64_t time_ns,
		    uint8_t flags);
/* The same, without a return. NULL: all of them, but the segment goes on. */
void frames__cut_to(struct frames *frames, const struct frame *frame, uint64_t time_ns,
		    enum left_by left_by);
/* It ends without a return of its own: by whom it was called (struct call_edges). is_passed: and an
 * exception came past that caller. */
void frames__learn_edge(struct frames *frames, const struct frame *frame, bool is_passed);

/* The frame will be found by its place: an unwind begins with it. */
void frames__name(struct frames *frames, const struct frame *frame);

/* frames_finish.c: unwinds. */

/* The id of the call that an unwind begins with, or ends in, before frames__finish(). */
static inline uint32_t frame__id(const struct frame *frame)
{
	return frame->index | (uint32_t)frame->is_root << 31;
}

/* An unwind has landed in that frame. It is complete except for `to`. */
void frames__add_unwind(struct frames *frames, const struct unwind *unwind, struct frame *to);
/* The latest that landed in the frame, or NULL. Good until the next one is added. */
struct unwind *frames__unwind_into(const struct frames *frames, const struct frame *frame);
/* One that landed in a frame, which was on the way only, has come to another. */
void frames__move_unwind(struct frames *frames, struct unwind *unwind, struct frame *to,
			 uint64_t time_ns);

/*
 * The segment, or the nested part, turns out to have run in `function` all along, below every frame
 * seen so far. It becomes the top. Only when the segment's or the part's frames have all ended.
 */
struct frame *frames__emplace_root(struct frames *frames, const struct function *function,
				   uint64_t ip);

/* A slice beside all segments, for a gap. From GAP_BETWEEN on they may be long ones. */
void frames__add_gap(struct frames *frames, uint64_t start_ns, uint64_t end_ns, uint8_t reason);
/* The same for a time in which another stack of the thread ran, before the next segment. */
void frames__add_wait(struct frames *frames, uint64_t start_ns, uint64_t end_ns);

/* The stack as it was near the end of the last segment, whose frames have all ended. */
void frames__take_stack(struct frames *frames, struct held_stack stack);

/*
 * The stack with which the first segment began, as far as it has shown that; or the one of a later
 * segment that was reached by an unwind and has shown enough. Valid until the next call.
 */
struct held_stack frames__show_begin(struct frames *frames);
/* Adds the n lowest frames that run, of functions. */
void frames__list_open(struct frames *frames, size_t n, held_vec *to);
/* The frames that run, with those below that only earlier segments showed. */
void frames__list_pending(struct frames *frames, held_vec *pending);

/* frames_join.c: `from` is the same stack, from its beginning on, behind what has ended in `to`,
 * which goes on as it; what lies between the two. `from` is as new. 0 or -ENOMEM. */
int frames__append(struct frames *to, struct frames *from, enum boundary boundary);

/* Hands all calls over to the tree, in pre-order, and the unwinds. 0 or -ENOMEM. */
int frames__finish(struct frames *frames, struct call_tree *tree);

/*
 * Branches that were taken for one stack's may turn out to be another's, by a return to where only
 * that one returns: everything done since is moved there.
 */

/* The number of frames that can be restored after they have ended. */
#define MARK_DEPTH 512

/* Frames as they were when their switch came back. */
struct frames_mark {
	uint64_t time_ns;
	uint64_t waits_at; /* where they went on */
	/* On the one that goes on: the switch function's, and the slice of the wait, if any. */
	size_t n_above;
	VEC(struct frame) top; /* the uppermost of those open */
	size_t n_open, n_calls, n_parts, n_roots, n_unwinds;
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
