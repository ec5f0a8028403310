// SPDX-License-Identifier: MIT
/*
 * What the segments of a stack show at their two ends, by which they are stitched; and segments
 * that turn out to continue another stack. Calls refer to each other, and are referred to, by their
 * places, which change then.
 */
#include "stack/frames.h"

#include <errno.h>
#include <string.h>

/* The evidence of a segment at its two ends, by which it is stitched to its neighbours. */

static struct part *running_segment(const struct frames *frames)
{
	uint32_t index = frames->part;

	while (index != PART_NONE && frames->parts.v[index].outer != PART_NONE)
		index = frames->parts.v[index].outer;
	return index == PART_NONE ? NULL : &frames->parts.v[index];
}

static bool is_function(const struct frame *frame)
{
	return frame->call.kind != CALL_SYSCALL && frame->call.kind != CALL_UNTRACED &&
	       frame->call.kind != CALL_SWITCHED;
}

void frames__list_open(struct frames *frames, size_t n, held_vec *to)
{
	for (size_t i = 0; i < n; i++) {
		const struct frame *frame = &frames->open.v[i];
		const struct held held = {.function = frame->call.function,
					  .return_ip = frame->return_ip ?: frame->resume_ip,
					  .entry_ip = frame->call.entry_ip,
					  .slack = frame->slack};

		if (is_function(frame) && VEC_ADD(to, held))
			frames->failed = true;
	}
}

void frames__hold(struct frames *frames, uint64_t time_ns, bool goes_on)
{
	struct part *segment = running_segment(frames);

	if (!segment)
		return;
	segment->end_ns = time_ns;
	frames->held.n = 0;
	if (goes_on)
		frames__list_open(frames, frames->open.n, &frames->held);
}

/* Adds a frame on top. Its return address is where its caller was first seen. */
static void show(struct frames *frames, const struct call *call)
{
	size_t n = frames->begun.n;
	const struct held held = {.function = call->function,
				  .return_ip = n ? frames->begun.v[n - 1].entry_ip : 0,
				  .entry_ip = call->entry_ip};

	if (VEC_ADD(&frames->begun, held))
		frames->failed = true;
}

/* A call is written to its place when it ends; until then it is in its frame. */
static const struct call *find_call(const struct frames *frames, uint32_t index, bool is_root)
{
	for (size_t i = 0; i < frames->open.n; i++)
		if (frames->open.v[i].index == index && frames->open.v[i].is_root == is_root)
			return &frames->open.v[i].call;
	return is_root ? &frames->roots.v[index].call : &frames->calls.v[FRAMES_ROOM + index];
}

static size_t end_of(const struct frames *frames, const struct part *segment)
{
	return running_segment(frames) == segment ? frames->calls.n - FRAMES_ROOM : segment->end;
}

/*
 * Lists the first calls that ran when the segment began: the first call, and each that is in the
 * one before.
 */
static void show_first_calls(struct frames *frames, const struct part *segment)
{
	size_t next = (size_t)(segment - frames->parts.v) + 1, end = end_of(frames, segment);

	if (next < frames->parts.n && frames->parts.v[next].first < end)
		end = frames->parts.v[next].first;
	for (size_t i = segment->first; i < end; i++) {
		const struct call *call = find_call(frames, (uint32_t)i, false);

		if (i > segment->first && !(call->flags & CALL_INFERRED_START))
			break;
		show(frames, call);
	}
}

/* Lists what the segment shows of the stack that it began with: its roots, and its first calls. */
static void show_begin(struct frames *frames, const struct part *segment)
{
	uint32_t root = segment->last_root;

	frames->begun.n = 0;
	for (; root != ROOT_NONE; root = frames->roots.v[root].before)
		show(frames, find_call(frames, root, true));
	show_first_calls(frames, segment);
}

static struct beginning beginning_of(struct frames *frames, const struct part *segment)
{
	show_begin(frames, segment);
	return (struct beginning){.frames = {frames->begun.v, frames->begun.n},
				  .boundary = segment->boundary,
				  .catcher = segment->catcher,
				  .distance = segment->distance,
				  .n_roots = segment->n_roots,
				  .is_unwinding = segment->is_unwinding};
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
	return (struct held_stack){frames->begun.v, frames->begun.n};
}

void frames__list_pending(struct frames *frames, held_vec *pending)
{
	const struct part *segment = running_segment(frames);
	struct held_stack below = {0};
	struct beginning begin;

	pending->n = 0;
	if (!segment)
		return;
	begin = beginning_of(frames, segment);
	if (!frames->failed)
		below = stitcher__below(&frames->stitcher, &begin);
	if (VEC_ADD_ALL(pending, &below))
		frames->failed = true;
	if (frames->open.n)
		frames__list_open(frames, frames->open.n, pending);
	else if (VEC_ADD_ALL(pending, &frames->held))
		frames->failed = true;
	/* The stack below may know the return address of the segment's first frame. */
	if (below.n && pending->n > below.n && !pending->v[below.n].return_ip)
		pending->v[below.n].return_ip = below.v[below.n].return_ip;
}

void frames__stitch(struct frames *frames, const struct part *segment)
{
	const struct beginning begin = beginning_of(frames, segment);

	if (frames->failed)
		return;
	if (stitcher__add(&frames->stitcher, &begin,
			  (struct held_stack){frames->held.v, frames->held.n}))
		frames->failed = true;
	frames->held.n = 0;
}

void frames__take_stack(struct frames *frames, struct held_stack stack)
{
	if (stitcher__anchor(&frames->stitcher, stack))
		frames->failed = true;
}

/* Joins frames that turn out to be of one stack. */

/* The places that the first elements of `from` get in `to`. */
struct offsets {
	uint32_t calls, parts, roots, unwinds;
};

static uint32_t moved(uint32_t index, uint32_t by)
{
	return index == UINT32_MAX ? index : index + by;
}

static uint32_t moved_id(uint32_t id, const struct offsets *by)
{
	return id & ROOT_BIT ? id + by->roots : id + by->calls;
}

static int append_calls(struct frames *to, const struct frames *from)
{
	size_t n = from->calls.n - FRAMES_ROOM;

	while (to->calls.cap < to->calls.n + n)
		if (frames__grow(to))
			return -ENOMEM;
	if (n)
		memcpy(&to->calls.v[to->calls.n], &from->calls.v[FRAMES_ROOM],
		       n * sizeof(*from->calls.v));
	to->calls.n += n;
	return 0;
}

/* Appends everything that refers to calls, or to others, by places. */
static int append_others(struct frames *to, const struct frames *from, const struct offsets *by)
{
	size_t n_open = to->open.n;

	to->landings.n = 0;
	if (VEC_ADD_ALL(&to->parts, &from->parts) || VEC_ADD_ALL(&to->roots, &from->roots) ||
	    VEC_ADD_ALL(&to->unwinds, &from->unwinds) || VEC_ADD_ALL(&to->open, &from->open) ||
	    VEC_ADD_ALL(&to->landings, &from->landings))
		return -ENOMEM;
	for (size_t i = by->parts; i < to->parts.n; i++) {
		struct part *part = &to->parts.v[i];

		part->outer = moved(part->outer, by->parts);
		part->last_root = moved(part->last_root, by->roots);
		part->first += by->calls;
		part->end += by->calls;
		part->catcher = WAITING_NONE;
	}
	for (size_t i = by->roots; i < to->roots.n; i++)
		to->roots.v[i].before = moved(to->roots.v[i].before, by->roots);
	for (size_t i = by->unwinds; i < to->unwinds.n; i++) {
		to->unwinds.v[i].from = moved_id(to->unwinds.v[i].from, by);
		to->unwinds.v[i].to = moved_id(to->unwinds.v[i].to, by);
	}
	for (size_t i = n_open; i < to->open.n; i++) {
		struct frame *frame = &to->open.v[i];

		frame->index += frame->is_root ? by->roots : by->calls;
		frame->unwind += frame->unwind ? by->unwinds : 0;
	}
	for (size_t i = 0; i < to->landings.n; i++)
		to->landings.v[i].index += to->landings.v[i].is_root ? by->roots : by->calls;
	return 0;
}

/* Stitches the ended segments from `first` on once more. */
static void stitch(struct frames *to, size_t first)
{
	const struct part *running = running_segment(to);
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
	to->level = from->level;
	to->boundary = from->boundary;
	to->failed |= from->failed;
}

int frames__append(struct frames *to, struct frames *from, enum boundary boundary)
{
	const struct offsets by = {.calls = (uint32_t)(to->calls.n - FRAMES_ROOM),
				   .parts = (uint32_t)to->parts.n,
				   .roots = (uint32_t)to->roots.n,
				   .unwinds = (uint32_t)to->unwinds.n};
	held_vec held;

	from->parts.v[0].boundary = boundary;
	if (append_calls(to, from) || append_others(to, from, &by))
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
