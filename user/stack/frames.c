// SPDX-License-Identifier: MIT
#include "stack/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/branch.h"
#include "kernel/kernel.h"

/* Each call has an index of 32 bits, and one value means none. */
#define MAX_CALLS ((size_t)1 << 31)

void frames__init(struct frames *frames)
{
	*frames = (struct frames){.part = PART_NONE, .calls.n = FRAMES_ROOM};
}

void frames__fini(struct frames *frames)
{
	VEC_FINI(&frames->calls);
	VEC_FINI(&frames->open);
	VEC_FINI(&frames->parts);
	VEC_FINI(&frames->landings);
	VEC_FINI(&frames->begun);
	VEC_FINI(&frames->held);
	stitcher__fini(&frames->stitcher);
	VEC_FINI(&frames->unwinds);
}

static struct part *running_part(const struct frames *frames)
{
	return frames->part == PART_NONE ? NULL : &frames->parts.v[frames->part];
}

int frames__grow(struct frames *frames)
{
	size_t cap = frames->calls.cap ?: FRAMES_ROOM;

	if (cap > MAX_CALLS / 2 || vec__grow(&frames->calls.v, &cap, cap, sizeof(*frames->calls.v)))
		return -ENOMEM;
	frames->calls.cap = cap;
	huge_pages__use(frames->calls.v);
	return 0;
}

static uint32_t n_calls(const struct frames *frames)
{
	return (uint32_t)(frames->calls.n - FRAMES_ROOM);
}

static struct call *place(const struct frames *frames, uint32_t index)
{
	return &frames->calls.v[FRAMES_ROOM + index];
}

/*
 * Reserves a place and stores its index. Its call is written when it ends. Returns false if memory
 * runs out.
 */
static bool add_place(struct frames *frames, uint32_t *index)
{
	if (frames->calls.n >= frames->calls.cap && frames__grow(frames)) {
		frames->failed = true;
		return false;
	}
	*index = n_calls(frames);
	frames->calls.n++;
	return true;
}

/* The evidence of a segment at its two ends, by which it is stitched to its neighbours. */

struct part *frames__running_segment(const struct frames *frames)
{
	uint32_t index = frames->part;

	while (index != PART_NONE && frames->parts.v[index].outer != PART_NONE)
		index = frames->parts.v[index].outer;
	return index == PART_NONE ? NULL : &frames->parts.v[index];
}

void frames__list_open(struct frames *frames, size_t n, held_vec *to)
{
	for (size_t i = 0; i < n; i++) {
		const struct frame *frame = &frames->open.v[i];
		const struct held held = {.function = frame->call.function,
					  .return_ip = frame->return_ip ?: frame->resume_ip,
					  .entry_ip = frame->call.entry_ip,
					  .slack = frame->slack};

		if (frame->call.kind != CALL_SYSCALL && frame->call.kind != CALL_UNTRACED &&
		    frame->call.kind != CALL_SWITCHED && VEC_ADD(to, held))
			frames->failed = true;
	}
}

/* Adds a new frame on top. Its return address is where its caller was first seen. */
static void show(struct frames *frames, const struct call *call)
{
	size_t n = frames->begun.n;
	const struct held held = {.function = call->function,
				  .return_ip = n ? frames->begun.v[n - 1].entry_ip : 0,
				  .entry_ip = call->entry_ip};

	frames->failed |= VEC_ADD(&frames->begun, held) != 0;
}

/* A call is written to its place when it ends; until then it is in its frame. */
static const struct call *find_call(const struct frames *frames, uint32_t index)
{
	VEC_EACH(&frames->open, frame)
		if (frame->index == index)
			return &frame->call;
	return place(frames, index);
}

/* Lists what the segment shows of the stack that it began with: its roots, and its first calls. */
static void show_begin(struct frames *frames, const struct part *segment)
{
	size_t next = (size_t)(segment - frames->parts.v) + 1;
	size_t end = frames__running_segment(frames) == segment ? n_calls(frames) : segment->end;
	uint32_t root = segment->last_root;

	frames->begun.n = 0;
	for (uint32_t i = 0; i < segment->n_roots; i++) {
		const struct call *call = find_call(frames, root);

		show(frames, call);
		root -= call->parent;
	}
	/* The first calls ran when it began: the first one, and each that is in the one before. */
	if (next < frames->parts.n && frames->parts.v[next].first < end)
		end = frames->parts.v[next].first;
	for (size_t i = segment->first; i < end; i++) {
		const struct call *call = find_call(frames, (uint32_t)i);

		if (i > segment->first &&
		    (!(call->flags & CALL_INFERRED_START) || call__is_root(call)))
			break;
		show(frames, call);
	}
}

static struct beginning beginning_of(struct frames *frames, const struct part *segment)
{
	show_begin(frames, segment);
	return (struct beginning){.frames = held_vec__all(&frames->begun),
				  .end = held_vec__all(&frames->held),
				  .boundary = segment->boundary,
				  .catcher = segment->catcher,
				  .distance = segment->distance,
				  .n_roots = segment->n_roots,
				  .is_unwinding = segment->is_unwinding};
}

/* Stitches a segment that has ended. */
static void stitch(struct frames *frames, const struct part *segment)
{
	const struct beginning begin = beginning_of(frames, segment);

	if (frames->failed)
		return;
	stitcher__add(&frames->stitcher, &begin);
	frames->failed |= frames->stitcher.failed;
	frames->held.n = 0;
}

struct held_stack frames__show_begin(struct frames *frames)
{
	const struct part *most = NULL;
	size_t n = 0;

	frames->begun.n = 0;
	for (size_t i = 0; i < frames->parts.n; i++) {
		const struct part *part = &frames->parts.v[i];

		if (part->outer != PART_NONE)
			continue;
		if (i && part->boundary != BOUNDARY_UNWIND)
			break;
		show_begin(frames, part);
		/* A later segment shows more of the outer frames. */
		if (frames->begun.n >= n || frames->begun.n > 1) {
			n = frames->begun.n;
			most = part;
		}
	}
	if (most)
		show_begin(frames, most);
	return held_vec__all(&frames->begun);
}

void frames__list_pending(struct frames *frames, held_vec *pending)
{
	const struct part *segment = frames__running_segment(frames);
	struct held_stack below = {0};
	struct beginning begin;

	pending->n = 0;
	if (!segment)
		return;
	begin = beginning_of(frames, segment);
	/* The frames at its end, which stitch() will get. */
	if (frames->open.n) {
		frames__list_open(frames, frames->open.n, pending);
		begin.end = held_vec__all(pending);
	}
	if (!frames->failed)
		below = stitcher__below(&frames->stitcher, &begin);
	pending->n = 0;
	frames->failed |= VEC_ADD_ALL(pending, &below) != 0;
	if (frames->open.n)
		frames__list_open(frames, frames->open.n, pending);
	else if (VEC_ADD_ALL(pending, &frames->held))
		frames->failed = true;
	/* The stack below may know the return address of the segment's first frame. */
	if (below.n && pending->n > below.n && !pending->v[below.n].return_ip)
		pending->v[below.n].return_ip = below.v[below.n].return_ip;
}

void frames__take_stack(struct frames *frames, size_t end, struct held_stack stack)
{
	stitcher__anchor(&frames->stitcher, end, stack);
	frames->failed |= frames->stitcher.failed;
}

/* Segments and parts begin and end. */

static void begin_part(struct frames *frames, uint64_t time_ns, uint32_t outer)
{
	struct part *part = frames->parts.n < PART_NONE ? VEC_PUSH(&frames->parts) : NULL;

	if (!part) {
		frames->failed = true;
		return;
	}
	*part = (struct part){.start_ns = time_ns,
			      .outer = outer,
			      .n_below = (uint32_t)frames->open.n,
			      .first = n_calls(frames),
			      .depth = (uint32_t)frames->open.n - frames->n_roots,
			      .catcher = WAITING_NONE};
	frames->part = (uint32_t)(frames->parts.n - 1);
	frames->n_below = part->n_below;
	frames->ended_in = NULL;
}

static void end_part(struct frames *frames, struct part *part)
{
	part->end = n_calls(frames);
	frames->n_roots -= part->n_roots;
	frames->part = part->outer;
	part = running_part(frames);
	frames->n_below = part ? part->n_below : 0;
}

void frames__end_segment(struct frames *frames)
{
	struct part *part, *segment = NULL;

	while ((part = running_part(frames))) {
		end_part(frames, part);
		segment = part;
	}
	if (segment)
		stitch(frames, segment);
}

void frames__begin_segment(struct frames *frames, uint64_t time_ns)
{
	frames__end_segment(frames);
	begin_part(frames, time_ns, PART_NONE);
	frames->start_ns = time_ns;
	if (frames->failed)
		return;
	frames->parts.v[frames->part].end_ns = time_ns;
	frames->parts.v[frames->part].boundary = frames->boundary;
	frames->boundary = BOUNDARY_GAP;
}

void frames__begin_below(struct frames *frames, uint64_t time_ns, struct waiting catcher,
			 uint32_t distance)
{
	frames->boundary = BOUNDARY_UNWIND;
	frames__begin_segment(frames, time_ns);
	if (frames->failed)
		return;
	frames->parts.v[frames->part].catcher = catcher;
	frames->parts.v[frames->part].distance = distance;
}

void frames__begin_with(struct frames *frames, uint64_t time_ns, struct held_stack stack,
			uint8_t flags)
{
	frames__begin_segment(frames, time_ns);
	for (size_t i = 0; i < stack.n && !frames->failed; i++) {
		const struct held *held = &stack.v[i];
		const struct call call = {
			.start_ns = time_ns,
			.entry_ip = i + 1 < stack.n ? held[1].return_ip : held->entry_ip,
			.function = held->function,
			.flags = flags | CALL_INFERRED_START,
		};
		struct frame *frame = frames__push(frames, &call);

		if (frame) {
			frame->return_ip = held->return_ip;
			frame->slack = held->slack;
		}
	}
}

void frames__begin_nested(struct frames *frames, uint64_t time_ns)
{
	begin_part(frames, time_ns, frames->part);
}

void frames__forget(struct frames *frames)
{
	frames__end_segment(frames);
	stitcher__finish(&frames->stitcher);
	frames->failed |= frames->stitcher.failed;
}

struct frame *frames__parent(const struct frames *frames, const struct frame *frame)
{
	size_t index = (size_t)(frame - frames->open.v);

	return index ? &frames->open.v[index - 1] : NULL;
}

struct frame *frames__below(const struct frames *frames)
{
	size_t n = frames->open.n;

	return n && n == frames->n_below ? &frames->open.v[n - 1] : NULL;
}

bool frames__is_last(const struct frames *frames)
{
	const struct frame *top = frames__top(frames);

	return top && !call__is_root(&top->call) && top->index == n_calls(frames) - 1;
}

struct frame *frames__push(struct frames *frames, const struct call *call)
{
	struct frame *frame = VEC_PUSH(&frames->open);

	if (!frame) {
		frames->failed = true;
		return NULL;
	}
	*frame = (struct frame){.call = *call, .kept_ns = call->start_ns};
	/* The number of roots below it is not known yet. */
	frame->call.depth = (uint32_t)frames->open.n - 1 - frames->n_roots;
	if (!add_place(frames, &frame->index)) {
		frames->open.n--;
		return NULL;
	}
	return frame;
}

/*
 * Hands calls to the consumer before the tree is finished. A call that has ended is final, unless
 * it may continue after a gap, or something refers to it by its place. It is handed on with its
 * callees, and their places are reused.
 *
 * Callees that were made in one inlined call share its slice: they are handed on together, when a
 * later callee is elsewhere.
 *
 * The consumer writes a call after those that it was given before, but readers order events by
 * time. So the begin of a call must not have the time of another event that comes before it and is
 * handed on later: the begin of its caller, or the end of a call that is kept.
 */

/* Deeper calls wait until the number of roots below them is known: files have a depth limit. */
#define MAX_DEPTH 256

/*
 * True if calls from this place on must not move: a part begins after it, or an unwind refers to it
 * or to a later one.
 */
static bool is_named(const struct frames *frames, uint32_t index)
{
	const struct part *part = &frames->parts.v[frames->parts.n - 1];

	return part->first > index || index < frames->n_named;
}

void frames__name(struct frames *frames, const struct frame *frame)
{
	if (frame->index >= frames->n_named)
		frames->n_named = frame->index + 1;
}

/* Stands for the site of a call that ran before its segment began: after a gap it may be any. */
static const struct inlined any;

/* True if some of its callees wait to be handed on. */
static bool has_waiting(const struct frame *caller)
{
	return caller->in && !caller->keeps_in;
}

/*
 * A tail call replaces an earlier call, and a signal handler is not called: both count as made in
 * the inlined call of the one before them.
 */
static const struct inlined *find_inlined(const struct frames *frames, const struct frame *frame,
					  const struct inlined *before)
{
	const struct call_consumer *consumer = frames->consumer;
	const struct inlined *in = consumer->outermost(consumer->ctx, &frame->call);

	return frame->call.flags & CALL_BY_JUMP || frame->call.kind == CALL_SIGNAL ? before : in;
}

/*
 * Hands on the calls from `first` up to `end`, made by frames at that depth, and moves the later
 * calls into their places.
 */
static void tell(struct frames *frames, uint32_t first, uint32_t end, size_t depth)
{
	struct call *calls = place(frames, first);
	size_t n = end - first, n_behind = n_calls(frames) - end;

	frames->failed |= frames->consumer->take(frames->consumer->ctx, calls, n) != 0;
	if (n_behind)
		memmove(calls, calls + n, n_behind * sizeof(*calls));
	frames->calls.n -= n;
	while (frames->landings.n && frames->landings.v[frames->landings.n - 1].depth >= depth)
		frames->landings.n--;
}

/*
 * Keeps the frame, at this depth, until its caller is handed on; a frame without a caller is kept
 * until the end.
 */
static void keep(struct frames *frames, struct frame *frame, size_t depth)
{
	struct frame *caller = depth ? frame - 1 : NULL;

	/* A frame that goes on after a gap may make more calls in the same inlined code. */
	if (has_waiting(frame) && !(frame->call.flags & CALL_INFERRED_END) &&
	    !is_named(frames, frame->first_in))
		tell(frames, frame->first_in, n_calls(frames), depth + 1);
	frames->ended_in = find_inlined(frames, frame, caller ? caller->in : frames->ended_in);
	if (frame->call.flags & CALL_INFERRED_START)
		frames->ended_in = &any;
	if (!caller)
		return;
	place(frames, frame->index)->told_before = caller->has_told;
	caller->has_told = false;
	caller->kept_ns = frame->call.end_ns;
	caller->keeps |=
		frame->keeps || (frame->call.depth >= MAX_DEPTH && !call__is_root(&frame->call));
	caller->in = frames->ended_in;
	caller->keeps_in = caller->in;
}

/* The top frame has ended, and its call is in its place. */
static void tell_ended(struct frames *frames, struct frame *frame)
{
	const uint8_t inferred = CALL_INFERRED_START | CALL_INFERRED_END;
	const struct call *call = &frame->call;
	size_t depth = (size_t)(frame - frames->open.v);
	struct frame *caller = depth ? frame - 1 : NULL;
	bool is_final = caller && depth != frames->n_below && call->start_ns > caller->kept_ns &&
			!frame->keeps && !(call->flags & inferred) && call->depth < MAX_DEPTH;
	const struct inlined *in;

	frames->ended_ns = call->end_ns;
	/* The waiting callees of its caller come before it. */
	if (!is_final || is_named(frames, has_waiting(caller) ? caller->first_in : frame->index)) {
		keep(frames, frame, depth);
		return;
	}
	in = find_inlined(frames, frame, caller->in);
	if (in && caller->keeps_in && (in == caller->in || caller->in == &any)) {
		keep(frames, frame, depth);
		return;
	}
	/* The waiting callees will be handed on with it. */
	caller->told_ns = call->end_ns;
	if (in && in == caller->in)
		return;
	if (has_waiting(caller)) {
		tell(frames, caller->first_in, frame->index, depth);
		frame->index = caller->first_in;
		caller->has_told = true;
	}
	caller->in = in;
	caller->first_in = frame->index;
	caller->keeps_in = false;
	if (in) {
		/* A slice of inlined code ends if another callee has been handed on in between. */
		place(frames, frame->index)->told_before = caller->has_told;
		caller->has_told = false;
	} else {
		tell(frames, frame->index, n_calls(frames), depth);
		caller->has_told = true;
	}
}

/* Frames begin and end. */

void frames__pop(struct frames *frames, uint64_t time_ns, uint8_t flags)
{
	struct frame *top = frames__top(frames);

	if (!top)
		return;
	top->call.end_ns = time_ns;
	top->call.flags |= flags;
	top->call.told_at_end = top->told_ns == time_ns;
	*place(frames, top->index) = top->call;
	if (frames->consumer)
		tell_ended(frames, top);
	frames->open.n--;
}

void frames__drop_last(struct frames *frames)
{
	frames->open.n--;
	frames->calls.n--;
}

void frames__pop_to(struct frames *frames, const struct frame *frame, uint64_t time_ns,
		    uint8_t flags)
{
	struct part *segment = frame || !frames->open.n ? NULL : frames__running_segment(frames);
	size_t n = frame ? (size_t)(frame - frames->open.v) + 1 : 0;

	if (segment) {
		segment->end_ns = time_ns;
		frames->held.n = 0;
		if (flags & CALL_INFERRED_END)
			frames__list_open(frames, frames->open.n, &frames->held);
	}
	for (;;) {
		struct part *part = running_part(frames);

		while (frames->open.n > n && frames__top(frames))
			frames__pop(frames, time_ns, flags);
		/* Nested parts end with their frames, the segment does not. */
		if (n > frames->n_below || !part || part->outer == PART_NONE)
			return;
		end_part(frames, part);
	}
}

void frames__learn_edge(struct frames *frames, const struct frame *frame, bool is_passed)
{
	const struct frame *caller = frames__parent(frames, frame);
	const struct call_edge edge = {.caller = caller ? caller->call.function : NULL,
				       .callee = frame->call.function,
				       .return_ip = frame->return_ip,
				       .is_passed = is_passed};

	frames->failed |= call_edges__learn(&frames->stitcher.edges, &edge) != 0;
}

void frames__cut_to(struct frames *frames, const struct frame *frame, uint64_t time_ns,
		    enum left_by left_by)
{
	bool is_exception = left_by == LEFT_BY_THROW || left_by == LEFT_BY_PANIC;
	size_t n = frame ? (size_t)(frame - frames->open.v) + 1 : 0;

	for (size_t i = n; i < frames->open.n; i++) {
		frames->open.v[i].call.left_by = left_by;
		frames__learn_edge(frames, &frames->open.v[i], is_exception && i > n);
	}
	frames__pop_to(frames, frame, time_ns, CALL_CUT_SHORT);
}

void frames__add_unwind(struct frames *frames, const struct unwind *unwind, struct frame *to)
{
	struct unwind *added = VEC_PUSH(&frames->unwinds);

	if (!added) {
		frames->failed = true;
		return;
	}
	*added = *unwind;
	added->to = to->index;
	to->unwind = (uint32_t)frames->unwinds.n;
}

struct unwind *frames__unwind_into(const struct frames *frames, const struct frame *frame)
{
	return frame->unwind ? &frames->unwinds.v[frame->unwind - 1] : NULL;
}

void frames__move_unwind(struct frames *frames, struct unwind *unwind, struct frame *to,
			 uint64_t time_ns)
{
	unwind->to = to->index;
	unwind->end_ns = time_ns;
	to->unwind = (uint32_t)(unwind - frames->unwinds.v) + 1;
}

struct frame *frames__emplace_root(struct frames *frames, const struct function *function,
				   uint64_t ip)
{
	struct part *part = running_part(frames);
	struct frame *frame = NULL;

	if (part)
		frame = frames__push(frames, &(struct call){.start_ns = part->start_ns,
							    .entry_ip = ip,
							    .function = function,
							    .flags = CALL_INFERRED_START});
	if (!frame)
		return NULL;
	frame->kept_ns = frames->ended_ns;
	frame->in = frames->ended_in;
	frame->keeps_in = frames->ended_in;
	frame->call.depth = ROOT_DEPTH;
	frame->call.parent = part->n_roots ? frame->index - part->last_root : 0;
	part->last_root = frame->index;
	part->n_roots++;
	frames->n_roots++;
	return frame;
}

void frames__note_lowest(struct frames *frames, bool is_unwinder)
{
	struct part *part = running_part(frames);

	if (part)
		part->is_unwinding = is_unwinder;
}

static void add_beside(struct frames *frames, const struct call *call)
{
	uint32_t index;

	frames__end_segment(frames);
	if (add_place(frames, &index))
		*place(frames, index) = *call;
}

void frames__add_gap(struct frames *frames, uint64_t start_ns, uint64_t end_ns, uint8_t reason)
{
	/* Several gaps at one time are shown as one. */
	if (end_ns == start_ns && frames->has_gap && frames->last_gap_ns == start_ns)
		frames__end_segment(frames);
	else
		add_beside(frames, &(struct call){.start_ns = start_ns,
						  .end_ns = end_ns,
						  .kind = CALL_GAP,
						  .reason = reason});
	frames->has_gap = true;
	frames->last_gap_ns = end_ns;
	frames->boundary = reason >= GAP_BETWEEN ? BOUNDARY_LONG : BOUNDARY_GAP;
}

void frames__add_wait(struct frames *frames, uint64_t start_ns, uint64_t end_ns)
{
	add_beside(frames,
		   &(struct call){.start_ns = start_ns, .end_ns = end_ns, .kind = CALL_SWITCHED});
}

/*
 * Frames that turn out to be of another stack: what one has done since a switch is moved to another
 * one, and segments that continue another stack are appended to it. Calls refer to each other, and
 * are referred to, by their places, which change then.
 */

void frames_mark__fini(struct frames_mark *mark)
{
	VEC_FINI(&mark->top);
}

int frames_mark__set(struct frames_mark *mark, const struct frames *frames, uint64_t time_ns,
		     uint64_t waits_at, size_t n_above)
{
	size_t n = frames->open.n < MARK_DEPTH ? frames->open.n : MARK_DEPTH;

	mark->time_ns = time_ns;
	mark->waits_at = waits_at;
	mark->n_above = n_above;
	mark->n_open = frames->open.n;
	mark->n_calls = frames->calls.n;
	mark->n_parts = frames->parts.n;
	mark->n_roots = frames->n_roots;
	mark->n_unwinds = frames->unwinds.n;
	mark->top.n = 0;
	for (size_t i = frames->open.n - n; i < frames->open.n; i++)
		if (VEC_ADD(&mark->top, frames->open.v[i]))
			return -ENOMEM;
	return 0;
}

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

static size_t n_ended(const struct frames_mark *mark, const struct frames *from)
{
	return mark->n_open - mark->n_above - from->open.n;
}

bool frames_mark__is_whole(const struct frames_mark *mark, const struct frames *from)
{
	const struct frame *top = frames__top(from), *was;

	if (!top || mark->n_open < from->open.n + mark->n_above || mark->n_parts != from->parts.n ||
	    mark->n_roots != from->n_roots || mark->n_unwinds != from->unwinds.n)
		return false;
	/* An unwind may have been moved to a call that began since. */
	VEC_EACH(&from->unwinds, unwind)
		if (unwind->to + FRAMES_ROOM >= mark->n_calls)
			return false;
	was = marked(mark, n_ended(mark, from));
	if (!was || call__is_root(&was->call) != call__is_root(&top->call))
		return false;
	if (was->index == top->index)
		return true;
	/* The top is a tail call, and the only one: its caller was there at the mark. */
	return was->return_ip == top->return_ip && top->index + FRAMES_ROOM >= mark->n_calls &&
	       (from->open.n == 1 || top[-1].index + FRAMES_ROOM < mark->n_calls);
}

bool frames_mark__fits(const struct frames_mark *mark, const struct frames *from,
		       const struct frames *to, uint64_t ip)
{
	size_t n;

	if (!frames_mark__is_whole(mark, from))
		return false;
	n = n_ended(mark, from);
	for (size_t i = 0; i <= n; i++) {
		const struct frame *a = marked(mark, i), *b;
		size_t from_top = i + ABOVE + 1;

		if (from_top + to->n_below > to->open.n)
			return false;
		b = &to->open.v[to->open.n - from_top];
		if (b->call.function != a->call.function)
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

/* The frame's call went on since the mark, and has ended like the one in its place in `from`. */
static void end_like(struct frames *to, const struct frames *from, const struct frame *was)
{
	const struct call *end = place(from, was->index);
	struct call *call = &frames__top(to)->call;

	call->self_insns += end->self_insns - was->call.self_insns;
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

int frames_mark__move(const struct frames_mark *mark, struct frames *from, struct frames *to)
{
	size_t n = n_ended(mark, from), n_calls = to->calls.n, n_landings = 0;
	const struct frame *top = frames__top(from), *was = marked(mark, n);
	bool waits = frames__top(to)->call.kind == CALL_SWITCHED;
	uint32_t deeper;
	int err;

	/* If `to` waits, the frame in which it continues becomes its top. */
	for (int i = 0; i < ABOVE && waits; i++)
		frames__pop(to, mark->time_ns, 0);
	for (size_t i = 0; i < n; i++)
		end_like(to, from, marked(mark, i));
	deeper = (uint32_t)(to->open.n - to->n_roots) - (uint32_t)(from->open.n - from->n_roots);
	if (was->index == top->index) {
		frames__top(to)->call.self_insns += top->call.self_insns - was->call.self_insns;
		err = add_calls(to, from, mark->n_calls, deeper);
	} else {
		/* A tail call has taken the place of the frame. */
		struct frame frame = *top;

		frame.return_ip = frames__top(to)->return_ip;
		frame.slack = frames__top(to)->slack;
		frame.call.depth += deeper;
		frame.index += (uint32_t)(n_calls - mark->n_calls);
		end_like(to, from, was);
		err = add_calls(to, from, mark->n_calls, deeper);
		err = err ? err : VEC_ADD(&to->open, frame);
	}
	memcpy(&from->open.v[mark->n_open - mark->top.n], mark->top.v,
	       mark->top.n * sizeof(*mark->top.v));
	from->open.n = mark->n_open;
	from->calls.n = mark->n_calls;
	VEC_EACH(&from->landings, landing)
		if (landing->index + FRAMES_ROOM < mark->n_calls)
			from->landings.v[n_landings++] = *landing;
	from->landings.n = n_landings;
	return err;
}

static uint32_t moved(uint32_t index, uint32_t by)
{
	return index == UINT32_MAX ? index : index + by;
}

int frames__append(struct frames *to, struct frames *from, enum boundary boundary)
{
	/* Everything refers to calls, and to others, by places: these grow by so much. */
	const uint32_t calls = n_calls(to), parts = (uint32_t)to->parts.n,
		       unwinds = (uint32_t)to->unwinds.n;
	const size_t n_open = to->open.n;
	const struct part *running;
	held_vec held;

	from->parts.v[0].boundary = boundary;
	to->landings.n = 0;
	/* `from` keeps its own indexes, which stay right if memory runs out. */
	if (add_calls(to, from, FRAMES_ROOM, 0) || VEC_ADD_ALL(&to->parts, &from->parts) ||
	    VEC_ADD_ALL(&to->unwinds, &from->unwinds) || VEC_ADD_ALL(&to->open, &from->open) ||
	    VEC_ADD_ALL(&to->landings, &from->landings))
		return -ENOMEM;
	for (size_t i = parts; i < to->parts.n; i++) {
		struct part *part = &to->parts.v[i];

		part->outer = moved(part->outer, parts);
		part->last_root += calls;
		part->first += calls;
		part->end += calls;
		part->catcher = WAITING_NONE;
	}
	for (size_t i = unwinds; i < to->unwinds.n; i++) {
		to->unwinds.v[i].from += calls;
		to->unwinds.v[i].to += calls;
	}
	for (size_t i = n_open; i < to->open.n; i++) {
		to->open.v[i].index += calls;
		to->open.v[i].unwind += to->open.v[i].unwind ? unwinds : 0;
	}
	VEC_EACH(&to->landings, landing)
		landing->index += calls;
	to->part = moved(from->part, parts);
	to->n_below = from->n_below;
	to->n_roots = from->n_roots;
	to->start_ns = from->start_ns;
	to->boundary = from->boundary;
	to->failed |= from->failed;
	/* The segments that have ended are stitched once more, on those of `to`. */
	running = frames__running_segment(to);
	for (size_t i = parts; i < to->parts.n && &to->parts.v[i] != running && !to->failed; i++)
		if (to->parts.v[i].outer == PART_NONE)
			stitch(to, &to->parts.v[i]);
	held = to->held;
	to->held = from->held;
	from->held = held;
	frames__fini(from);
	frames__init(from);
	return to->failed ? -ENOMEM : 0;
}
