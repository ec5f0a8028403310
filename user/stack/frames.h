/* SPDX-License-Identifier: MIT */
/*
 * The frames of one thread. Running frames are on a stack. A frame that has ended becomes a call,
 * in the place that was reserved when it began, so calls are in pre-order. A caller that is
 * discovered late, a root, belongs below everything seen before: it is moved there when the tree is
 * finished. A segment may contain nested parts, whose callers are found in the same way; a nested
 * part is on top of the frame that it will return to.
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

/* A running frame: a call that has not returned. */
struct frame {
	struct call call;   /* call.parent, call.depth: final only after frames__finish() */
	uint64_t return_ip; /* where its RET will go; 0: not known */
	/*
	 * Signal and kernel frames: where the interrupted code continues. Functions that switch
	 * stacks: where this stack continues; return_ip is 0, since their RET may switch.
	 */
	uint64_t resume_ip;
	/*
	 * When the last callee that was kept ended (at first: when this frame began), and when the
	 * last one that goes to the consumer ended.
	 */
	uint64_t kept_ns, told_ns;
	/* The outermost inlined call in which its last callee was made; NULL: none. */
	const struct inlined *in;
	uint32_t index;	   /* its place among the calls */
	uint32_t unwind;   /* number of the last unwind that landed in it, from 1; 0: none */
	uint32_t first_in; /* index of the first callee in `in`; the consumer gets these together */
	bool keeps_in;	   /* the callees made in `in` are not handed on before this frame is */
	bool has_told;	   /* the consumer has got callees since the last one that was kept */
	bool keeps;	   /* a call in it is at least MAX_DEPTH deep: not handed on early */
	bool is_resolving; /* a PLT stub's frame in which the dynamic linker's resolver runs */
	uint8_t slack;	   /* its RET may go up to this many bytes after return_ip as well */
	uint8_t role;	   /* enum function_role if it may switch stacks, otherwise ROLE_NONE */
};

/* True if a RET to ip, which is not 0, may be this frame's. */
static inline bool frame__returns_to(const struct frame *frame, uint64_t ip)
{
	return ip - frame->return_ip <= frame->slack;
}

/* True for a PLT stub, or the resolver that it went to: neither is the called function. */
static inline bool frame__is_stub(const struct frame *frame)
{
	return frame->is_resolving ||
	       (frame->call.function && frame->call.function->kind == FUNCTION_PLT);
}

/* A segment, or a nested part of one. */
struct part {
	uint64_t start_ns;
	uint32_t outer;	     /* the part that it is nested in, or PART_NONE */
	uint32_t n_below;    /* number of open frames when it began: it is on top of these */
	uint32_t depth;	     /* call.depth of its first frame */
	uint32_t first, end; /* indices [first, end) of its calls and of those of parts in it */
	uint32_t n_roots;
	uint32_t last_root; /* index of the call of the root that was found last */
	/* If it is a segment: */
	uint64_t end_ns;
	enum boundary boundary; /* between the segment before and this one */
	struct waiting catcher; /* the frame in which the unwind to this segment landed */
	/* Frames from the lowest that the segment before showed down to `catcher`; 0: not known. */
	uint32_t distance;
	bool is_unwinding; /* the lowest frame that it shows is an unwinder's */
};

/*
 * The depth of a root until frames__finish(). Until then its call.parent is the distance to the
 * root that was found before it in the same part, which it has called; 0: none. The depth of frames
 * above roots does not count the roots, so it may be a little below 0.
 */
#define ROOT_DEPTH (1u << 31)

static inline bool call__is_root(const struct call *call)
{
	return call->depth == ROOT_DEPTH;
}

/* The address after a call of setjmp(), where longjmp() may land while the frame lives. */
struct landing {
	uint64_t ip;
	size_t depth;	 /* the frame that called setjmp() is frames.open.v[depth] */
	uint32_t index;	 /* its frame.index; if that differs, the frame has ended */
	bool is_taken;	 /* a longjmp() has landed there since setjmp() was called */
	uint8_t left_by; /* enum left_by of the calls that a jump to it ends */
	uint8_t slack;	 /* it may land up to this many bytes after ip as well */
};

struct frames {
	VEC(struct call) calls; /* the first FRAMES_ROOM places are for late callers */
	VEC(struct frame) open;
	VEC(struct part) parts; /* in the order of their first calls */
	/* `from` and `to` are frame.index of calls until frames__finish(). */
	VEC(struct unwind) unwinds;
	VEC(struct landing) landings; /* unwinding.c; the outer frames' first */
	struct stitcher stitcher;
	/*
	 * The frames at the begin of a segment (memory of show_begin()); those at the end of the
	 * last segment, until it is stitched.
	 */
	held_vec begun, held;
	enum boundary boundary; /* before the next segment */
	bool has_gap;
	uint64_t last_gap_ns; /* if has_gap: when it ended */
	uint32_t part;	      /* index of the running part, or PART_NONE */
	uint32_t n_below;     /* n_below of the running part, or 0 */
	uint32_t n_roots;     /* sum over the running part and those around it */
	uint64_t start_ns;    /* of the segment; a nested part has its own */
	bool failed;	      /* out of memory: nothing more is added */
	/* For the consumer, frames.c: */
	const struct call_consumer *consumer; /* takes calls before their tree; or NULL */
	/* Calls with a lower index must stay in place: unwinds may refer to them. */
	uint32_t n_named;
	uint64_t ended_ns;		/* when the last call ended */
	const struct inlined *ended_in; /* the inlined call in which the last kept call was made */
};

void frames__init(struct frames *frames);
void frames__fini(struct frames *frames);

/* Begins a segment without frames. The one before must have ended. */
void frames__begin_segment(struct frames *frames, uint64_t time_ns);
/* Begins a segment on these frames. Their calls get `flags` and CALL_INFERRED_START. */
void frames__begin_with(struct frames *frames, uint64_t time_ns, struct held_stack stack,
			uint8_t flags);

/*
 * Ends the segment and begins one after an unwind to a frame below all that the ended one showed.
 * That frame is `catcher`, or WAITING_NONE if it is not known, and is `distance` frames below the
 * lowest one shown; 0: not known.
 */
void frames__begin_below(struct frames *frames, uint64_t time_ns, struct waiting catcher,
			 uint32_t distance);

/* Ends the running segment, if any, and its parts. */
void frames__end_segment(struct frames *frames);
/* Does the same; the next segment is not related to those before. */
void frames__forget(struct frames *frames);

/* Begins a nested part, without frames, on top of the running frame. */
void frames__begin_nested(struct frames *frames, uint64_t time_ns);
/* If a nested part lacks frames: the frame that it is on top of. Otherwise NULL. */
struct frame *frames__below(const struct frames *frames);

/* The running frame; NULL if the segment, or the part, does not have one. */
static inline struct frame *frames__top(const struct frames *frames)
{
	size_t n = frames->open.n;

	return n > frames->n_below ? &frames->open.v[n - 1] : NULL;
}

/* The frame's caller, or the frame that its nested part is on top of; NULL: none is known. */
struct frame *frames__parent(const struct frames *frames, const struct frame *frame);
/* The same for a call's frame; NULL for a kernel entry, which the frame below has not called. */
static inline struct frame *frames__caller(const struct frames *frames, const struct frame *frame)
{
	return frame->call.kind == CALL_KERNEL ? NULL : frames__parent(frames, frame);
}

/*
 * The innermost frame that runs `function`, from `frame` (or NULL) on outwards; NULL: none, up to a
 * kernel entry.
 */
static inline struct frame *frames__find(const struct frames *frames, struct frame *frame,
					 const struct function *function)
{
	while (frame && frame->call.function != function)
		frame = frames__caller(frames, frame);
	return frame;
}

/* True if the call that was added last is the running frame's: that has called nothing so far. */
bool frames__is_last(const struct frames *frames);

/*
 * Pushes a new frame with a copy of `call`, whose start, addresses, function, kind and flags are
 * set. Invalidates pointers to frames. NULL: no memory (frames->failed).
 */
struct frame *frames__push(struct frames *frames, const struct call *call);
/* Ends the top frame. */
void frames__pop(struct frames *frames, uint64_t time_ns, uint8_t flags);
/* Removes the top frame, which must be the last call, as if it had never begun. */
void frames__drop_last(struct frames *frames);
/*
 * Ends frames, with these flags, and nested parts until `frame` is the top. NULL: all frames, at
 * the end of the segment. With CALL_INFERRED_END they may continue in the next segment.
 */
void frames__pop_to(struct frames *frames, const struct frame *frame, uint64_t time_ns,
		    uint8_t flags);
/*
 * Does the same to frames that end without a return: each gets `left_by`, and its caller is learnt.
 * NULL: all frames.
 */
void frames__cut_to(struct frames *frames, const struct frame *frame, uint64_t time_ns,
		    enum left_by left_by);
/* The frame ends without a return: stores who called it (struct call_edges). is_passed: an
 * exception has passed that caller, too. */
void frames__learn_edge(struct frames *frames, const struct frame *frame, bool is_passed);

/* Keeps the frame's call, and those before it, where they are: an unwind refers to it by index. */
void frames__name(struct frames *frames, const struct frame *frame);

/* Adds an unwind that has landed in the frame `to`. It is complete except for unwind->to. */
void frames__add_unwind(struct frames *frames, const struct unwind *unwind, struct frame *to);
/* The last unwind that landed in the frame, or NULL. Valid until the next one is added. */
struct unwind *frames__unwind_into(const struct frames *frames, const struct frame *frame);
/* The frame in which the unwind landed has continued it: it now lands in `to`. */
void frames__move_unwind(struct frames *frames, struct unwind *unwind, struct frame *to,
			 uint64_t time_ns);

/*
 * Adds `function` as the caller of all frames of the segment, or of the nested part: it has run
 * since the beginning, and becomes the top frame. All these frames must have ended.
 */
struct frame *frames__emplace_root(struct frames *frames, const struct function *function,
				   uint64_t ip);

/* Notes whether the lowest frame that the running segment has shown is an unwinder's. */
void frames__note_lowest(struct frames *frames, bool is_unwinder);

/*
 * Ends the segment, and adds a gap's slice after it. Reasons from GAP_BETWEEN on are long gaps
 * (BOUNDARY_LONG).
 */
void frames__add_gap(struct frames *frames, uint64_t start_ns, uint64_t end_ns, uint8_t reason);
/* Adds a new slice for the time in which another stack of the thread ran, before the next segment.
 */
void frames__add_wait(struct frames *frames, uint64_t start_ns, uint64_t end_ns);

/*
 * Adds callers from a stack that shows those of stitcher.ends[end]. The last end is that of the
 * last segment, which must have ended.
 */
void frames__take_stack(struct frames *frames, size_t end, struct held_stack stack);

/*
 * The stack with which the first segment began, as far as it has shown that; or the one of a later
 * segment that was reached by an unwind and has shown enough. Valid until the next call.
 */
struct held_stack frames__show_begin(struct frames *frames);
/* Adds those of the n lowest running frames that are functions. */
void frames__list_open(struct frames *frames, size_t n, held_vec *to);
/* Adds the running frames, and those below them that only earlier segments showed. */
void frames__list_pending(struct frames *frames, held_vec *pending);

/* `from` turns out to continue the stack of `to`, whose frames have ended. Appends
 * it, with this boundary between the two, and empties `from`. 0 or -ENOMEM. */
int frames__append(struct frames *to, struct frames *from, enum boundary boundary);

/* Moves all calls, in pre-order, and the unwinds to the tree. 0 or -ENOMEM. */
int frames__finish(struct frames *frames, struct call_tree *tree);

/*
 * Branches that seemed to be one stack's may turn out to be another's, by a return to an address to
 * which only that one returns. Everything done since the switch is then moved there.
 */

/* The number of frames that can be restored after they have ended. */
#define MARK_DEPTH 512

/* The frames as they were when a switch returned to them. */
struct frames_mark {
	uint64_t time_ns;
	uint64_t waits_at; /* address at which the stack continued */
	/* Frames above the one that continues: the switch function's, and the wait's, if any. */
	size_t n_above;
	VEC(struct frame) top; /* the uppermost open frames */
	size_t n_open, n_calls, n_parts, n_roots, n_unwinds;
};

void frames_mark__fini(struct frames_mark *mark);

/* Stores the frames as they are, before they continue at waits_at. 0 or -ENOMEM. */
int frames_mark__set(struct frames_mark *mark, const struct frames *frames, uint64_t time_ns,
		     uint64_t waits_at, size_t n_above);

/* True if nothing has changed since the mark but that frames have made calls and ended. */
bool frames_mark__is_whole(const struct frames_mark *mark, const struct frames *from);

/*
 * `from` has run since the mark, and its top frame now returns to ip (0: not known). True if the
 * waiting stack `to` may have run instead: its frames have the same functions and return addresses
 * as those that have returned.
 */
bool frames_mark__fits(const struct frames_mark *mark, const struct frames *from,
		       const struct frames *to, uint64_t ip);

/*
 * No known stack fits: gives the new stack `to` the frames that have returned since the mark, and
 * the one that returns now. False if more has happened since the mark, or they are too far down.
 */
bool frames_mark__begin_like(const struct frames_mark *mark, const struct frames *from,
			     struct frames *to);

/*
 * Moves what `from` has done since the mark to `to`, which must fit, and then no longer waits, or
 * begin like it (see above). Restores `from` as it was at the mark. 0 or -ENOMEM.
 */
int frames_mark__move(const struct frames_mark *mark, struct frames *from, struct frames *to);

/* From here on: only for frames.c and frames_finish.c. */

/*
 * Places left free before the first call, so that late roots fit in front of it without moving all
 * calls. A tree has only a few roots.
 */
#define FRAMES_ROOM 1024

/* Makes room for one more call. 0 or -ENOMEM. */
int frames__grow(struct frames *frames);
/* The segment that runs; NULL: none. */
struct part *frames__running_segment(const struct frames *frames);

#endif
