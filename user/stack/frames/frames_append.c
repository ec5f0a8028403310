// SPDX-License-Identifier: MIT
/* What turns out to be one stack, joined: calls name one another, and others, by their places. */
#include "stack/frames/frames.h"

#include <errno.h>
#include <string.h>

#include "stack/frames/frames_internal.h"

/* Where the first of `from` comes to be in `to`. */
struct offsets {
	uint32_t calls, parts, roots, leaps;
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

static int append_parts(struct frames *to, const struct frames *from, const struct offsets *by)
{
	for (size_t i = 0; i < from->parts.n; i++) {
		struct part *part = VEC_PUSH(&to->parts);

		if (!part)
			return -ENOMEM;
		*part = from->parts.v[i];
		part->outer = moved(part->outer, by->parts);
		part->last_root = moved(part->last_root, by->roots);
		part->first += by->calls;
		part->end += by->calls;
		part->taker = WAITING_NONE;
	}
	return 0;
}

static int append_roots(struct frames *to, const struct frames *from, const struct offsets *by)
{
	for (size_t i = 0; i < from->roots.n; i++) {
		struct root *root = VEC_PUSH(&to->roots);

		if (!root)
			return -ENOMEM;
		*root = from->roots.v[i];
		root->before = moved(root->before, by->roots);
	}
	return 0;
}

static int append_leaps(struct frames *to, const struct frames *from, const struct offsets *by)
{
	for (size_t i = 0; i < from->leaps.n; i++) {
		struct leap *leap = VEC_PUSH(&to->leaps);

		if (!leap)
			return -ENOMEM;
		*leap = from->leaps.v[i];
		leap->from = moved_id(leap->from, by);
		leap->to = moved_id(leap->to, by);
	}
	return 0;
}

static int append_open(struct frames *to, const struct frames *from, const struct offsets *by)
{
	for (size_t i = 0; i < from->open.n; i++) {
		struct frame *frame = VEC_PUSH(&to->open);

		if (!frame)
			return -ENOMEM;
		*frame = from->open.v[i];
		frame->index += frame->is_root ? by->roots : by->calls;
		frame->leap += frame->leap ? by->leaps : 0;
	}
	to->landings.n = 0;
	for (size_t i = 0; i < from->landings.n; i++) {
		struct landing *landing = VEC_PUSH(&to->landings);

		if (!landing)
			return -ENOMEM;
		*landing = from->landings.v[i];
		landing->index += landing->is_root ? by->roots : by->calls;
	}
	return 0;
}

/* Segments that have ended; they are stitched anew. */
static void stitch(struct frames *to, size_t first)
{
	uint32_t running = to->part;

	while (running != PART_NONE && to->parts.v[running].outer != PART_NONE)
		running = to->parts.v[running].outer;
	for (size_t i = first; i < to->parts.n && i < running && !to->failed; i++)
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
	to->seam = from->seam;
	to->failed |= from->failed;
}

int frames__append(struct frames *to, struct frames *from)
{
	const struct offsets by = {.calls = (uint32_t)(to->calls.n - FRAMES_ROOM),
				   .parts = (uint32_t)to->parts.n,
				   .roots = (uint32_t)to->roots.n,
				   .leaps = (uint32_t)to->leaps.n};

	if (append_calls(to, from) || append_parts(to, from, &by) || append_roots(to, from, &by) ||
	    append_leaps(to, from, &by) || append_open(to, from, &by))
		return -ENOMEM;
	go_on_as(to, from, &by);
	stitch(to, by.parts);
	frames__fini(from);
	frames__init(from);
	return to->failed ? -ENOMEM : 0;
}
