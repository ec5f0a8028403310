// SPDX-License-Identifier: MIT
/* What a segment tells of its two ends, for it to be stitched to its neighbours. */
#include "stack/frames_internal.h"

static struct part *running_segment(const struct frames *frames)
{
	uint32_t index = frames->part;

	while (index != PART_NONE && frames->parts.v[index].outer != PART_NONE)
		index = frames->parts.v[index].outer;
	return index == PART_NONE ? NULL : &frames->parts.v[index];
}

static void hold_open(struct frames *frames)
{
	for (size_t i = 0; i < frames->open.n && !frames->failed; i++) {
		const struct frame *frame = &frames->open.v[i];
		struct held *held;

		if (frame->call.kind == CALL_SYSCALL || frame->call.kind == CALL_UNTRACED ||
		    frame->call.kind == CALL_SWITCHED)
			continue;
		held = VEC_PUSH(&frames->held);
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
		hold_open(frames);
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

/* What it shows of the stack that it began with: its roots, and its first call. */
static void show_begin(struct frames *frames, const struct part *segment)
{
	uint32_t root = segment->last_root;

	frames->begun.n = 0;
	for (; root != ROOT_NONE; root = frames->roots.v[root].before)
		show(frames, &frames->roots.v[root].call);
	if (segment->end > segment->first)
		show(frames, &frames->calls.v[FRAMES_ROOM + segment->first]);
}

void frames__stitch(struct frames *frames, const struct part *segment)
{
	show_begin(frames, segment);
	if (frames->failed)
		return;
	if (stitcher__add(&frames->stitcher, (struct held_stack){frames->begun.v, frames->begun.n},
			  (struct held_stack){frames->held.v, frames->held.n}, segment->seam))
		frames->failed = true;
	frames->held.n = 0;
}

void frames__take_stack(struct frames *frames, struct held_stack stack)
{
	frames__end_segment(frames);
	if (stitcher__anchor(&frames->stitcher, stack))
		frames->failed = true;
}
