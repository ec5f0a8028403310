// SPDX-License-Identifier: MIT
/*
 * Calls that are told before the tree is finished. One that has ended is final, unless it may run
 * on behind a gap, or is named by its place. It is told with what it called, and its places are
 * free again.
 *
 * Who takes it writes it down behind what was told before, but readers order events by time. So its
 * begin must not have the time of another event that comes before it and is told later: the begin
 * of its caller, or the end of a call that is kept.
 */
#include "stack/frames/frames_internal.h"

/* Deeper ones wait until it is known how many roots are below them: files have a limit. */
#define MAX_DEPTH 256

/* What came since may have to be found by its place: parts, and calls of leaps. */
static bool is_named(const struct frames *frames, const struct frame *frame)
{
	const struct part *part = &frames->parts.v[frames->parts.n - 1];

	return part->first > frame->index || frame->index < frames->n_named;
}

void frames__name(struct frames *frames, const struct frame *frame)
{
	if (frame->index >= frames->n_named)
		frames->n_named = frame->index + 1;
}

static bool is_final(const struct frames *frames, const struct frame *frame,
		     const struct frame *caller)
{
	const uint8_t inferred = CALL_INFERRED_START | CALL_INFERRED_END;
	const struct call *call = &frame->call;

	return call->start_ns > caller->kept_ns && !frame->is_root && !frame->keeps &&
	       !(call->flags & inferred) && call->depth < MAX_DEPTH && !is_named(frames, frame);
}

/* Where one call is inlined code's, that has a slice, for which all others there count. */
static bool is_inlined(const struct frames *frames, const struct frame *frame, struct frame *caller)
{
	const struct call_taker *taker = frames->taker;

	if (taker->is_in_inlined(taker->ctx, &frame->call))
		caller->keeps_callees = true;
	return caller->keeps_callees;
}

static void keep(const struct frame *frame, struct frame *below)
{
	below->kept_ns = frame->call.end_ns;
	below->keeps |= frame->keeps || frame->call.depth >= MAX_DEPTH;
}

void frames__tell(struct frames *frames, const struct frame *frame)
{
	size_t n = (size_t)(frame - frames->open.v), at = FRAMES_ROOM + frame->index;
	struct frame *below = n ? &frames->open.v[n - 1] : NULL;

	frames->ended_ns = frame->call.end_ns;
	if (!below)
		return;
	if (is_inlined(frames, frame, below) || n == frames->n_below ||
	    !is_final(frames, frame, below)) {
		keep(frame, below);
		return;
	}
	below->told_ns = frame->call.end_ns;
	if (frames->taker->take(frames->taker->ctx, &frames->calls.v[at], frames->calls.n - at))
		frames->failed = true;
	frames->calls.n = at;
	while (frames->landings.n && frames->landings.v[frames->landings.n - 1].depth >= n)
		frames->landings.n--;
}
