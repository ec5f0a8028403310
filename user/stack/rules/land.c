// SPDX-License-Identifier: MIT
/*
 * Into the middle of a function, by something that is no return: of its frames, the one that an
 * exception or a longjmp() came back to. Exceptions come to landing pads: the frame that one is for
 * is the innermost whose pending call has that pad.
 */
#include "stack/stack_internal.h"

#include <string.h>

#include "stack/departure.h"
#include "stack/unwinders.h"
#include "target/unwind/landing_pads.h"
#include "target/unwind/ocaml_handlers.h"

/* The instruction that the frame is at: one that calls, unless it is the top. 0: not known. */
static uint64_t pending_site(const struct frame *frame, const struct frame *top,
			     const struct branch *b)
{
	uint64_t ip;

	if (frame == top)
		return b->from;
	frame++;
	if (frame->call.kind == CALL_SIGNAL)
		return frame->resume_ip;
	ip = frame->role ? frame->resume_ip : frame->return_ip;
	return ip ? ip - 1 : 0;
}

/* Whether an exception that leaves what is called at `site` comes to `pad`, which lies at ip. */
static bool leads_to(struct stack *s, uint64_t site, const struct code_place *pad, uint64_t ip)
{
	struct code_place from;

	return site && code_map__find(s->map, site, &from) && from.image == pad->image &&
	       site - from.vaddr == ip - pad->vaddr &&
	       landing_pads__find(from.image, from.vaddr) == pad->vaddr;
}

/* Functions without symbols are pieces, as .eh_frame has them: a pad may lie in another one. */
static bool may_hold(const struct function *function, const struct code_place *pad)
{
	return function == pad->function ||
	       (function && function->kind == FUNCTION_UNKNOWN && function->image == pad->image &&
		pad->function->kind == FUNCTION_UNKNOWN);
}

static struct frame *find_taker(struct stack *s, const struct branch *b,
				const struct code_place *pad)
{
	struct frame *top = frames__top(s->frames), *frame = top;

	for (; frame; frame = frames__parent(s->frames, frame)) {
		if (may_hold(frame->call.function, pad) &&
		    leads_to(s, pending_site(frame, top, b), pad, b->to))
			return frame;
		/* What an interrupt or a syscall lies on is no caller. */
		if (frame->call.kind == CALL_KERNEL)
			return NULL;
	}
	return NULL;
}

struct landed {
	struct stack *s;
	const struct branch *b;
	struct code_place pad;
};

static bool takes(void *ctx, const struct function *function, uint64_t return_ip)
{
	const struct landed *landed = ctx;

	return return_ip && may_hold(function, &landed->pad) &&
	       leads_to(landed->s, return_ip - 1, &landed->pad, landed->b->to);
}

static bool has_pad(struct stack *s, uint64_t return_ip)
{
	struct code_place from;

	return return_ip && code_map__find(s->map, return_ip - 1, &from) &&
	       landing_pads__find(from.image, from.vaddr);
}

/* The exception has come from a clean-up, of the next frame that has a landing pad. */
static void find_clean_up(struct stack *s, const struct stitched *end, struct waiting *taker)
{
	size_t n = end->stack.n;

	for (size_t i = taker->at + 1; i < n; i++) {
		if (!has_pad(s, i + 1 < n ? end->stack.v[i + 1].return_ip : end->left_ip))
			continue;
		taker->from = (uint32_t)i;
		taker->from_end = (uint32_t)(i + 1 < n ? i + 2 : n);
		return;
	}
}

/* It was thrown: what threw it is the innermost frame that does, and does not return. */
static void find_thrower(const struct stitched *end, struct waiting *taker)
{
	for (size_t i = end->stack.n; i-- > taker->at + 1;) {
		const struct function *function = end->stack.v[i].function;

		if (!function || !function->name || !unwinder__find(function->name))
			continue;
		taker->from = (uint32_t)i;
		taker->from_end = (uint32_t)end->stack.n;
		return;
	}
}

/* So many frames above it has the exception come past that it would have landed in. */
static size_t count_passed(const struct landed *landed, const struct stitched *end, size_t taker,
			   uint64_t pad)
{
	struct landed before = {.s = landed->s, .b = &(struct branch){.to = pad}};
	size_t n = end->stack.n;

	if (!pad || !code_map__find(landed->s->map, pad, &before.pad))
		return 0;
	for (size_t i = taker + 1; i < n; i++)
		if (!takes(&before, end->stack.v[i].function,
			   i + 1 < n ? end->stack.v[i + 1].return_ip : end->left_ip))
			return 0;
	return n - 1 - taker;
}

/* If it is the same exception: it was so much further below, from the gap on. */
static void mend_level(const struct landed *landed, struct stitcher *stitcher,
		       const struct waiting *taker)
{
	uint64_t pad = stitcher__last_pad(stitcher, taker->end);
	size_t n = count_passed(landed, &stitcher->ends[taker->end], taker->at, pad);

	if (n)
		stitcher__sink(stitcher, taker->end, n);
}

static bool takes_at(const struct landed *landed, const struct stitched *end, size_t at)
{
	const struct held *above = &end->stack.v[at + 1];

	return takes((void *)landed, above[-1].function,
		     at + 1 < end->stack.n ? above->return_ip : end->left_ip);
}

/* Of the frames from before a gap: the innermost whose pending call has that pad. */
static struct waiting find_waiting(struct stack *s, const struct branch *b,
				   const struct departure *by, bool is_lowest, uint32_t distance)
{
	struct stitcher *stitcher = &s->frames->stitcher;
	struct landed landed = {.s = s, .b = b};
	struct waiting taker;

	if (!code_map__find(s->map, b->to, &landed.pad))
		return WAITING_NONE;
	taker = stitcher__reach(stitcher, distance);
	if (taker.end < stitcher->n_ends && takes_at(&landed, &stitcher->ends[taker.end], taker.at))
		return taker;
	taker = stitcher__find(stitcher, takes, &landed);
	if (taker.end >= stitcher->n_ends)
		return taker;
	/* A panic is caught wherever anything is; what is thrown anew may be of another type. */
	if (by->resumes || by->left_by == LEFT_BY_PANIC)
		mend_level(&landed, stitcher, &taker);
	if (!is_lowest)
		return taker;
	if (by->resumes)
		find_clean_up(s, &stitcher->ends[taker.end], &taker);
	else
		find_thrower(&stitcher->ends[taker.end], &taker);
	return taker;
}

/* The frame that was unwound to lies so far below all that the segment has shown; 0: not known. */
static uint32_t count_below(const struct stack *s)
{
	size_t n = stack__count_steps(s), shown = s->frames->open.n;

	for (size_t i = 0; i < shown; i++)
		if (s->frames->open.v[i].call.kind != CALL_FUNCTION)
			return 0;
	return n >= shown ? (uint32_t)(n - (shown - 1)) : 0;
}

/* What took it ran below everything that the segment has shown. */
static struct frame *begin_below(struct stack *s, const struct branch *b,
				 const struct departure *by, bool is_lowest, uint32_t distance)
{
	long level = s->frames->level;

	frames__end_segment(s->frames);
	frames__begin_below(s->frames, b->time_ns, find_waiting(s, b, by, is_lowest, distance),
			    distance);
	stack__push_first(s, b->to);
	s->frames->level = level;
	return frames__top(s->frames);
}

/* The leap that landed in a clean-up, and goes on; NULL: it is another one. */
static struct leap *find_earlier(struct stack *s, const struct departure *by)
{
	struct frame *clean_up = by->resuming ? frames__parent(s->frames, by->resuming) : NULL;

	return clean_up ? frames__leap_into(s->frames, clean_up) : NULL;
}

static void begin_at(struct leap *leap, const struct frame *from)
{
	leap->start_ns = from->call.start_ns;
	leap->from = frame__id(from);
}

/*
 * The frames above `taker` end, or all of them where it has not been seen yet: what `b` went to is
 * their caller then.
 */
static void land(struct stack *s, const struct branch *b, struct frame *taker, struct departure by)
{
	struct leap *earlier = find_earlier(s, &by);
	struct leap leap = {.end_ns = b->time_ns};
	bool is_lowest = by.frame && by.frame == s->frames->open.v;

	if (earlier && by.resumes)
		by.left_by = earlier->left_by;
	leap.left_by = by.left_by;
	if (by.frame) {
		frames__name(s->frames, by.frame);
		begin_at(&leap, by.frame);
	}
	/* A clean-up may have been in what began it: a panic goes through several functions. */
	if (earlier && !by.resumes) {
		earlier->left_by = by.left_by;
		begin_at(earlier, by.frame);
	}
	if (taker) {
		frames__cut_to(s->frames, taker, b->time_ns, by.left_by);
	} else {
		uint32_t distance = count_below(s);

		frames__cut_all(s->frames, b->time_ns, by.left_by);
		taker = begin_below(s, b, &by, is_lowest, distance);
	}
	if (taker && earlier)
		frames__move_leap(s->frames, earlier, taker, b->time_ns);
	else if (taker && by.frame)
		frames__add_leap(s->frames, &leap, taker);
}

/*
 * Who leaves frames goes where a register or the stack says. A jump whose target is in the code is
 * within a function of which no symbol tells that it lies in two places.
 */
static bool may_leave_frames(struct stack *s, const struct branch *b)
{
	const uint8_t bnd = 0xf2, jmp_rel32 = 0xe9, jmp_rel8 = 0xeb;
	uint8_t code[2] = {0};

	if (b->kind != BRANCH_JUMP)
		return b->kind == BRANCH_RETURN;
	code_map__read(s->map, b->from, code, sizeof(code));
	if (code[0] == bnd)
		code[0] = code[1];
	return code[0] != jmp_rel32 && code[0] != jmp_rel8;
}

/* Nobody says which calls the handler is for: the nearest activation, then. */
static struct frame *find_nearest(struct stack *s, const struct function *function)
{
	struct frame *frame = frames__top(s->frames);

	while (frame && frame->call.function != function && frame->call.kind != CALL_KERNEL)
		frame = frames__parent(s->frames, frame);
	return frame && frame->call.function == function ? frame : NULL;
}

/* An exception of OCaml's came to one of its handlers: to which frame, NULL: not known. */
static bool find_raised(struct stack *s, const struct branch *b, const struct code_place *pad,
			struct frame **taker)
{
	if (ocaml_handlers__is_one(pad->image, pad->vaddr))
		*taker = find_taker(s, b, pad);
	else if (s->traps && ocaml_traps__has(s->traps, b->to))
		*taker = find_nearest(s, pad->function);
	else
		return false;
	return true;
}

bool stack__catch(struct stack *s, const struct branch *b)
{
	struct code_place pad;
	struct frame *taker;

	if (!code_map__find(s->map, b->to, &pad))
		return false;
	if (find_raised(s, b, &pad, &taker)) {
		stack__leap_to(s, b, taker, LEFT_BY_RAISE);
		return true;
	}
	if (!landing_pads__is_one(pad.image, pad.vaddr))
		return false;
	taker = find_taker(s, b, &pad);
	land(s, b, taker, departure__of_exception(s->frames, taker, pad.image));
	return true;
}

bool stack__land(struct stack *s, const struct branch *b, const struct function *function)
{
	struct frame *caller;

	if (!may_leave_frames(s, b))
		return false;
	if (stack__longjmp(s, b) || stack__catch(s, b))
		return true;
	caller = stack__find_caller(s, function);
	if (caller && caller->role == ROLE_FIBER) {
		stack__leap_to(s, b, caller, LEFT_BY_RAISE);
		return true;
	}
	if (caller) {
		land(s, b, caller, departure__find(s->frames, caller));
		return true;
	}
	/* Thrown to where no table knows of it, and no frame is known. */
	if (!departure__is_near(s->frames))
		return false;
	land(s, b, NULL, departure__find(s->frames, NULL));
	return true;
}

void stack__leap_to(struct stack *s, const struct branch *b, struct frame *taker,
		    enum left_by left_by)
{
	struct departure by = departure__find(s->frames, taker);
	struct frame *top = frames__top(s->frames);

	/* It may end what threw. */
	if (!by.frame || by.left_by == LEFT_BY_LONGJMP)
		by.left_by = left_by;
	if (!by.frame && left_by != LEFT_BY_UNKNOWN && top != taker)
		by.frame = top;
	land(s, b, taker, by);
}
