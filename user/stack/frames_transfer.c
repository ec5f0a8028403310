// SPDX-License-Identifier: MIT
/*
 * Frames that turn out to be of another stack: what one has done since a switch is moved to another
 * one, and segments that continue another stack are appended to it. Calls refer to each other, and
 * are referred to, by their places, which change then.
 */
#include "stack/frames.h"

#include <errno.h>
#include <string.h>

/* Moves what one stack has done since a switch to another one. */

/* On top of a waiting frame are the switch function's frame and the slice of the wait. */
#define ABOVE 2

/*
 * The frame that was i-th from the top at the mark, not counting n_above. NULL: it was too far
 * down.
 */
static const struct frame *marked(const struct frames_mark *mark, size_t i)
{
	i += mark->n_above + 1;
	return i <= mark->top.n ? &mark->top.v[mark->top.n - i] : NULL;
}

static const struct frame *waiting(const struct frames *frames, size_t i)
{
	i += ABOVE + 1;
	return i + frames->n_below <= frames->open.n ? &frames->open.v[frames->open.n - i] : NULL;
}

static size_t n_ended(const struct frames_mark *mark, const struct frames *from)
{
	return mark->n_open - mark->n_above - from->open.n;
}

/* True if a tail call has taken the place of the frame. */
static bool is_replaced(const struct frame *was, const struct frame *is)
{
	return was->index != is->index;
}

/* True if since the mark an unwind was added, or moved to a call that began since. */
static bool has_unwound(const struct frames_mark *mark, const struct frames *from)
{
	for (size_t i = 0; i < from->unwinds.n; i++)
		if (from->unwinds.v[i].to + FRAMES_ROOM >= mark->n_calls)
			return true;
	return from->unwinds.n != mark->n_unwinds;
}

static bool is_since(const struct frames_mark *mark, const struct frame *frame)
{
	return frame->index + FRAMES_ROOM >= mark->n_calls;
}

/* True if the top is a tail call, and the only one: its caller was there at the mark. */
static bool is_tail_call(const struct frames_mark *mark, const struct frames *from)
{
	const struct frame *top = frames__top(from);

	return is_since(mark, top) && (from->open.n == 1 || !is_since(mark, top - 1));
}

bool frames_mark__is_whole(const struct frames_mark *mark, const struct frames *from)
{
	const struct frame *top = frames__top(from), *was;

	if (!top || mark->n_open < from->open.n + mark->n_above || mark->n_parts != from->parts.n ||
	    mark->n_roots != from->n_roots || has_unwound(mark, from))
		return false;
	was = marked(mark, n_ended(mark, from));
	if (!was || call__is_root(&was->call) != call__is_root(&top->call))
		return false;
	return !is_replaced(was, top) ||
	       (was->return_ip == top->return_ip && is_tail_call(mark, from));
}

bool frames_mark__fits(const struct frames_mark *mark, const struct frames *from,
		       const struct frames *to, uint64_t ip)
{
	size_t n = frames_mark__is_whole(mark, from) ? n_ended(mark, from) : SIZE_MAX;

	if (n == SIZE_MAX)
		return false;
	for (size_t i = 0; i <= n; i++) {
		const struct frame *a = marked(mark, i), *b = waiting(to, i);

		if (!b || b->call.function != a->call.function)
			return false;
		if (i < n ? b->return_ip != a->return_ip : !frame__returns_to(b, ip))
			return false;
	}
	return true;
}

bool frames_mark__begin_like(const struct frames_mark *mark, const struct frames *from,
			     struct frames *to)
{
	struct held stack[MARK_DEPTH];
	size_t n;

	if (!frames_mark__is_whole(mark, from))
		return false;
	n = n_ended(mark, from) + 1;
	for (size_t i = 0; i < n; i++) {
		const struct frame *was = marked(mark, i);

		stack[n - 1 - i] = (struct held){.function = was->call.function,
						 .return_ip = i + 1 < n ? was->return_ip : 0,
						 .entry_ip = mark->waits_at};
	}
	frames__begin_with(to, mark->time_ns, (struct held_stack){stack, n}, 0);
	return !to->failed;
}

void frames_mark__go_on(const struct frames_mark *mark, struct frames *to)
{
	for (int i = 0; i < ABOVE; i++)
		frames__pop(to, mark->time_ns, 0);
}

static const struct call *ended_call(const struct frames *frames, const struct frame *frame)
{
	return &frames->calls.v[FRAMES_ROOM + frame->index];
}

static void end_like(struct frames *to, const struct call *end, const struct call *begin)
{
	struct call *call = &frames__top(to)->call;

	call->self_insns += end->self_insns - begin->self_insns;
	call->left_by = end->left_by;
	frames__pop(to, end->end_ns, end->flags & CALL_CUT_SHORT);
}

/* Adds copies of the calls from the place `first` on, that much deeper. */
static int add_calls(struct frames *to, const struct frames *from, size_t first, uint32_t deeper)
{
	for (size_t i = first; i < from->calls.n; i++) {
		struct call *call;

		if (to->calls.n >= to->calls.cap && frames__grow(to))
			return -ENOMEM;
		call = &to->calls.v[to->calls.n++];
		*call = from->calls.v[i];
		call->depth += deeper;
	}
	return 0;
}

/*
 * Moves the tail call that is the top of `from`. Calls are moved to n_calls and the places after
 * it.
 */
static int move_top(const struct frames_mark *mark, const struct frames *from, struct frames *to,
		    size_t n_calls, uint32_t deeper, const struct frame *returns)
{
	struct frame frame = *frames__top(from);

	frame.return_ip = returns->return_ip;
	frame.slack = returns->slack;
	frame.call.depth += deeper;
	frame.index += (uint32_t)(n_calls - mark->n_calls);
	return VEC_ADD(&to->open, frame);
}

static void forget_landings(struct frames *frames, size_t n_calls)
{
	size_t n = 0;

	for (size_t i = 0; i < frames->landings.n; i++)
		if (frames->landings.v[i].index + FRAMES_ROOM < n_calls)
			frames->landings.v[n++] = frames->landings.v[i];
	frames->landings.n = n;
}

static void put_back(const struct frames_mark *mark, struct frames *frames)
{
	memcpy(&frames->open.v[mark->n_open - mark->top.n], mark->top.v,
	       mark->top.n * sizeof(*mark->top.v));
	frames->open.n = mark->n_open;
	frames->calls.n = mark->n_calls;
	forget_landings(frames, mark->n_calls);
}

int frames_mark__move(const struct frames_mark *mark, struct frames *from, struct frames *to)
{
	size_t n = n_ended(mark, from), n_calls = to->calls.n;
	const struct frame *top = frames__top(from), *was = marked(mark, n);
	struct frame returns;
	uint32_t deeper;
	int err;

	for (size_t i = 0; i < n; i++)
		end_like(to, ended_call(from, marked(mark, i)), &marked(mark, i)->call);
	deeper = (uint32_t)(to->open.n - to->n_roots) - (uint32_t)(from->open.n - from->n_roots);
	returns = *frames__top(to);
	if (is_replaced(was, top))
		end_like(to, ended_call(from, was), &was->call);
	else
		frames__top(to)->call.self_insns += top->call.self_insns - was->call.self_insns;
	err = add_calls(to, from, mark->n_calls, deeper);
	if (!err && is_replaced(was, top))
		err = move_top(mark, from, to, n_calls, deeper, &returns);
	put_back(mark, from);
	return err;
}

/* Joins frames that turn out to be of one stack. */

/* The places that the first elements of `from` get in `to`. */
struct offsets {
	uint32_t calls, parts, unwinds;
};

static uint32_t moved(uint32_t index, uint32_t by)
{
	return index == UINT32_MAX ? index : index + by;
}

/* Appends everything that refers to calls, or to others, by places. */
static int append_others(struct frames *to, const struct frames *from, const struct offsets *by)
{
	size_t n_open = to->open.n;

	to->landings.n = 0;
	if (VEC_ADD_ALL(&to->parts, &from->parts) || VEC_ADD_ALL(&to->unwinds, &from->unwinds) ||
	    VEC_ADD_ALL(&to->open, &from->open) || VEC_ADD_ALL(&to->landings, &from->landings))
		return -ENOMEM;
	for (size_t i = by->parts; i < to->parts.n; i++) {
		struct part *part = &to->parts.v[i];

		part->outer = moved(part->outer, by->parts);
		part->last_root += by->calls;
		part->first += by->calls;
		part->end += by->calls;
		part->catcher = WAITING_NONE;
	}
	for (size_t i = by->unwinds; i < to->unwinds.n; i++) {
		to->unwinds.v[i].from += by->calls;
		to->unwinds.v[i].to += by->calls;
	}
	for (size_t i = n_open; i < to->open.n; i++) {
		struct frame *frame = &to->open.v[i];

		frame->index += by->calls;
		frame->unwind += frame->unwind ? by->unwinds : 0;
	}
	for (size_t i = 0; i < to->landings.n; i++)
		to->landings.v[i].index += by->calls;
	return 0;
}

/* Stitches the ended segments from `first` on once more. */
static void stitch(struct frames *to, size_t first)
{
	const struct part *running = frames__running_segment(to);
	size_t end = running ? (size_t)(running - to->parts.v) : to->parts.n;

	for (size_t i = first; i < end && !to->failed; i++)
		if (to->parts.v[i].outer == PART_NONE)
			frames__stitch(to, &to->parts.v[i]);
}

static void go_on_as(struct frames *to, const struct frames *from, const struct offsets *by)
{
	to->part = moved(from->part, by->parts);
	to->n_below = from->n_below;
	to->n_roots = from->n_roots;
	to->start_ns = from->start_ns;
	to->boundary = from->boundary;
	to->failed |= from->failed;
}

int frames__append(struct frames *to, struct frames *from, enum boundary boundary)
{
	const struct offsets by = {.calls = (uint32_t)(to->calls.n - FRAMES_ROOM),
				   .parts = (uint32_t)to->parts.n,
				   .unwinds = (uint32_t)to->unwinds.n};
	held_vec held;

	from->parts.v[0].boundary = boundary;
	if (add_calls(to, from, FRAMES_ROOM, 0) || append_others(to, from, &by))
		return -ENOMEM;
	go_on_as(to, from, &by);
	stitch(to, by.parts);
	held = to->held;
	to->held = from->held;
	from->held = held;
	frames__fini(from);
	frames__init(from);
	return to->failed ? -ENOMEM : 0;
}
