// SPDX-License-Identifier: MIT
#include "stack/frames/frames.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/branch.h"
#include "stack/frames/frames_internal.h"
#include "kernel/huge_pages.h"

/* An index of 32 bits for each, with the roots, and one that stands for none. */
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
	VEC_FINI(&frames->roots);
	VEC_FINI(&frames->landings);
	VEC_FINI(&frames->begun);
	VEC_FINI(&frames->held);
	stitcher__fini(&frames->stitcher);
	VEC_FINI(&frames->leaps);
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

/* The index of a new place, whose call is not written before it has ended. False: no memory. */
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
			      .last_root = ROOT_NONE,
			      .taker = WAITING_NONE};
	frames->part = (uint32_t)(frames->parts.n - 1);
	frames->n_below = part->n_below;
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
		frames__stitch(frames, segment);
}

void frames__begin_segment(struct frames *frames, uint64_t time_ns)
{
	frames__end_segment(frames);
	begin_part(frames, time_ns, PART_NONE);
	frames->start_ns = time_ns;
	if (frames->failed)
		return;
	frames->parts.v[frames->part].end_ns = time_ns;
	frames->parts.v[frames->part].seam = frames->seam;
	frames->seam = SEAM_GAP;
}

void frames__begin_below(struct frames *frames, uint64_t time_ns, struct waiting taker,
			 uint32_t distance)
{
	frames__end_segment(frames);
	frames->seam = SEAM_LEAP;
	frames__begin_segment(frames, time_ns);
	if (frames->failed)
		return;
	frames->parts.v[frames->part].taker = taker;
	frames->parts.v[frames->part].distance = distance;
}

void frames__begin_nested(struct frames *frames, uint64_t time_ns)
{
	begin_part(frames, time_ns, frames->part);
}

void frames__forget(struct frames *frames)
{
	frames__end_segment(frames);
	if (stitcher__finish(&frames->stitcher))
		frames->failed = true;
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

	return top && !top->is_root && top->index == n_calls(frames) - 1;
}

/* A nested part without frames is over. False where it is the segment that has none. */
static bool join(struct frames *frames)
{
	struct part *part = running_part(frames);

	if (!part || part->outer == PART_NONE)
		return false;
	end_part(frames, part);
	return true;
}

struct frame *frames__push(struct frames *frames, const struct call *call)
{
	struct frame *frame = VEC_PUSH(&frames->open);

	if (!frame) {
		frames->failed = true;
		return NULL;
	}
	*frame = (struct frame){.call = *call, .kept_ns = call->start_ns};
	/* What is not known yet is how many roots there will be below it. */
	frame->call.depth = (uint32_t)frames->open.n - 1 - frames->n_roots;
	if (!add_place(frames, &frame->index)) {
		frames->open.n--;
		return NULL;
	}
	frames->level++;
	return frame;
}

void frames__pop(struct frames *frames, uint64_t time_ns, uint8_t flags)
{
	struct frame *top = frames__top(frames);

	if (!top)
		return;
	top->call.end_ns = time_ns;
	top->call.flags |= flags;
	top->call.told_at_end = top->told_ns == time_ns;
	if (top->is_root)
		frames->roots.v[top->index].call = top->call;
	else
		*place(frames, top->index) = top->call;
	if (frames->taker)
		frames__tell(frames, top);
	frames->open.n--;
	frames->level--;
}

void frames__drop_last(struct frames *frames)
{
	frames->open.n--;
	frames->level--;
	frames->calls.n--;
}

void frames__unwind_to(struct frames *frames, const struct frame *frame, uint64_t time_ns,
		       uint8_t flags)
{
	size_t n = (size_t)(frame - frames->open.v) + 1;

	do {
		while (frames->open.n > n && frames__top(frames))
			frames__pop(frames, time_ns, flags);
	} while (n <= frames->n_below && join(frames));
}

void frames__learn_way(struct frames *frames, const struct frame *frame, bool is_passed)
{
	const struct frame *caller = frames__parent(frames, frame);
	const struct way way = {.caller = caller ? caller->call.function : NULL,
				.callee = frame->call.function,
				.return_ip = frame->return_ip,
				.is_passed = is_passed};

	if (ways__learn(&frames->stitcher.ways, &way))
		frames->failed = true;
}

/* All but the lowest ones end without a return. */
static void leave(struct frames *frames, size_t n_lowest, enum left_by left_by)
{
	bool is_exception = left_by == LEFT_BY_THROW || left_by == LEFT_BY_PANIC;

	for (size_t i = n_lowest; i < frames->open.n; i++) {
		frames->open.v[i].call.left_by = left_by;
		frames__learn_way(frames, &frames->open.v[i], is_exception && i > n_lowest);
	}
}

void frames__cut_to(struct frames *frames, const struct frame *frame, uint64_t time_ns,
		    enum left_by left_by)
{
	leave(frames, (size_t)(frame - frames->open.v) + 1, left_by);
	frames__unwind_to(frames, frame, time_ns, CALL_CUT_SHORT);
}

void frames__close_all(struct frames *frames, uint64_t time_ns, uint8_t flags)
{
	if (frames->open.n)
		frames__hold(frames, time_ns, flags & CALL_INFERRED_END);
	do {
		while (frames__top(frames))
			frames__pop(frames, time_ns, flags);
	} while (join(frames));
}

void frames__cut_all(struct frames *frames, uint64_t time_ns, enum left_by left_by)
{
	leave(frames, 0, left_by);
	frames__close_all(frames, time_ns, CALL_CUT_SHORT);
}

/* Aside, as the part's outermost frame. */
static struct root *add_root(struct frames *frames, struct part *part)
{
	struct root *root = VEC_PUSH(&frames->roots);

	if (!root)
		return NULL;
	*root = (struct root){.before = part->last_root};
	part->last_root = (uint32_t)(frames->roots.n - 1);
	part->n_roots++;
	frames->n_roots++;
	return root;
}

struct frame *frames__emplace_root(struct frames *frames, const struct function *function,
				   uint64_t ip)
{
	struct part *part = running_part(frames);
	struct root *root = part ? add_root(frames, part) : NULL;
	struct frame *frame = root ? VEC_PUSH(&frames->open) : NULL;

	if (!frame) {
		frames->failed = true;
		return NULL;
	}
	/* In a nested part it is one more on the frame below. */
	frames->level += part->outer != PART_NONE;
	*frame = (struct frame){
		.is_root = true,
		.kept_ns = frames->ended_ns,
		.index = part->last_root,
		.call = {.start_ns = part->start_ns,
			 .entry_ip = ip,
			 .function = function,
			 .flags = CALL_INFERRED_START},
	};
	return frame;
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
	add_beside(frames, &(struct call){.start_ns = start_ns,
					  .end_ns = end_ns,
					  .kind = CALL_GAP,
					  .reason = reason});
	frames->seam = reason >= GAP_BETWEEN ? SEAM_LONG : SEAM_GAP;
}

void frames__add_wait(struct frames *frames, uint64_t start_ns, uint64_t end_ns)
{
	add_beside(frames,
		   &(struct call){.start_ns = start_ns, .end_ns = end_ns, .kind = CALL_SWITCHED});
}
