// SPDX-License-Identifier: MIT
/* What a segment tells of its two ends, for it to be stitched to its neighbours. */
#include "stack/frames/frames_internal.h"
#include "stack/unwinding.h"

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

static void hold_open(struct frames *frames, held_vec *to)
{
	for (size_t i = 0; i < frames->open.n && !frames->failed; i++) {
		const struct frame *frame = &frames->open.v[i];
		struct held *held;

		if (!is_function(frame))
			continue;
		held = VEC_PUSH(to);
		if (held)
			*held = (struct held){
				.function = frame->call.function,
				.return_ip = frame->return_ip ? frame->return_ip : frame->resume_ip,
				.entry_ip = frame->call.entry_ip,
				.slack = frame->slack,
			};
		frames->failed |= !held;
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
		hold_open(frames, &frames->held);
}

/* On top of those before: where it returned to is where its caller was first seen. */
static void show(struct frames *frames, const struct call *call)
{
	struct held *held = VEC_PUSH(&frames->begun);

	if (!held) {
		frames->failed = true;
		return;
	}
	*held = (struct held){.function = call->function, .entry_ip = call->entry_ip};
	if (frames->begun.n > 1)
		held->return_ip = held[-1].entry_ip;
}

/* A call is not in its place before it has ended. */
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

/* The first calls that ran when the segment began: one, or each in the one before. */
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

/* What it shows of the stack that it began with: its roots, and its first calls. */
static void show_begin(struct frames *frames, const struct part *segment)
{
	uint32_t root = segment->last_root;

	frames->begun.n = 0;
	for (; root != ROOT_NONE; root = frames->roots.v[root].before)
		show(frames, find_call(frames, root, true));
	show_first_calls(frames, segment);
}

static bool is_unwinder(const struct held *held)
{
	const struct unwinder *unwinder = held->function && held->function->name
						  ? unwinder__find(held->function->name)
						  : NULL;

	return unwinder && unwinder->left_by != LEFT_BY_LONGJMP &&
	       unwinder->left_by != LEFT_BY_RAISE;
}

static struct beginning beginning_of(struct frames *frames, const struct part *segment)
{
	show_begin(frames, segment);
	return (struct beginning){.frames = {frames->begun.v, frames->begun.n},
				  .seam = segment->seam,
				  .taker = segment->taker,
				  .distance = segment->distance,
				  .n_roots = segment->n_roots,
				  .is_unwinding = frames->begun.n && is_unwinder(frames->begun.v)};
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
		if (i && part->seam != SEAM_LEAP)
			break;
		show_begin(frames, part);
		/* The outer frames tell more. */
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
	for (size_t i = 0; i < below.n && !frames->failed; i++) {
		struct held *held = VEC_PUSH(pending);

		if (held)
			*held = below.v[i];
		frames->failed |= !held;
	}
	hold_open(frames, pending);
	/* Below the first of the segment. */
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
	frames__end_segment(frames);
	if (stitcher__anchor(&frames->stitcher, stack))
		frames->failed = true;
}
