// SPDX-License-Identifier: MIT
/*
 * Calls in the order of their beginnings, and late roots aside, to a tree: one pass, since a root
 * found late makes everything in its part lie deeper, and moves everything behind it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stack/frames_internal.h"

struct pass {
	const struct frames *frames;
	const struct call *from; /* moves down within one array, or stays */
	struct call *to;
	size_t in, out;	  /* next call to move; where to */
	uint32_t part;	  /* that `in` lies in */
	uint32_t deeper;  /* by the late roots of that part and those around it */
	uint32_t n_roots; /* of all parts so far */
	VEC(uint32_t) path;
};

/* The call at `out` is in its place but for its parent: it is on the path that is open there. */
static int put(struct pass *p, struct call *call)
{
	uint32_t depth = call->depth;
	uint32_t *at = depth < p->path.n ? &p->path.v[depth] : VEC_PUSH(&p->path);

	if (!at)
		return -ENOMEM;
	call->parent = depth ? at[-1] : CALL_NO_PARENT;
	*at = (uint32_t)p->out++;
	return 0;
}

static int move_to(struct pass *p, size_t end)
{
	int err = 0;

	for (; p->in < end && !err; p->in++) {
		struct call *call = &p->to[p->out];

		*call = p->from[p->in];
		call->depth += p->deeper;
		err = put(p, call);
	}
	return err;
}

static void leave_part(struct pass *p)
{
	const struct part *part = &p->frames->parts.v[p->part];

	p->deeper -= part->n_roots;
	p->part = part->outer;
}

/* Up to `end`, and out of the parts that are over by then. */
static int move_out(struct pass *p, size_t end, uint32_t into)
{
	int err = 0;

	while (!err && p->part != into) {
		err = move_to(p, p->frames->parts.v[p->part].end);
		leave_part(p);
	}
	return err ? err : move_to(p, end);
}

/* The part's roots: each is the parent of the one found before it. */
static int enter_part(struct pass *p, uint32_t index)
{
	struct part *part = &p->frames->parts.v[index];
	uint32_t depth = part->depth + p->deeper, root = part->last_root;
	int err = 0;

	p->part = index;
	p->deeper += part->n_roots;
	for (; root != ROOT_NONE && !err; root = p->frames->roots.v[root].before) {
		struct call *call = &p->to[p->out];

		p->frames->roots.v[root].index = (uint32_t)p->out;
		*call = p->frames->roots.v[root].call;
		call->depth = depth++;
		err = put(p, call);
	}
	p->n_roots += part->n_roots;
	part->n_before = p->n_roots;
	return err;
}

static int run(struct pass *p, size_t end)
{
	const struct frames *frames = p->frames;
	int err = 0;

	for (uint32_t i = 0; i < frames->parts.n && !err; i++) {
		err = move_out(p, frames->parts.v[i].first, frames->parts.v[i].outer);
		if (!err)
			err = enter_part(p, i);
	}
	return err ? err : move_out(p, end, PART_NONE);
}

/* Moves the calls away from their front where more roots than there is room for belong there. */
static int make_room(struct frames *frames, size_t *room)
{
	size_t n = frames->calls.n - FRAMES_ROOM;

	*room = frames->roots.n > FRAMES_ROOM ? frames->roots.n : FRAMES_ROOM;
	while (frames->calls.cap < n + *room)
		if (frames__grow(frames))
			return -ENOMEM;
	if (*room > FRAMES_ROOM)
		memmove(&frames->calls.v[*room], &frames->calls.v[FRAMES_ROOM],
			n * sizeof(*frames->calls.v));
	return 0;
}

/* The last part that began before the call had its place, or PART_NONE. */
static uint32_t part_before(const struct frames *frames, uint32_t place)
{
	size_t lo = 0, hi = frames->parts.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (frames->parts.v[mid].first <= place)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? (uint32_t)(lo - 1) : PART_NONE;
}

/* Where the tree has the call that frame__id() told. */
static uint32_t index_of(const struct frames *frames, uint32_t id)
{
	uint32_t place = id & ~ROOT_BIT, part;

	if (id & ROOT_BIT)
		return frames->roots.v[place].index;
	part = part_before(frames, place);
	return place + (part == PART_NONE ? 0 : frames->parts.v[part].n_before);
}

static int compare_leaps(const void *a, const void *b)
{
	const struct leap *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static void hand_over_leaps(struct frames *frames, struct call_tree *tree)
{
	for (size_t i = 0; i < frames->leaps.n; i++) {
		struct leap *leap = &frames->leaps.v[i];

		leap->from = index_of(frames, leap->from);
		leap->to = index_of(frames, leap->to);
	}
	if (frames->leaps.n)
		qsort(frames->leaps.v, frames->leaps.n, sizeof(*frames->leaps.v), compare_leaps);
	tree->leaps.v = frames->leaps.v;
	tree->leaps.n = frames->leaps.n;
	tree->leaps.cap = frames->leaps.cap;
	frames->leaps.v = NULL;
	frames->leaps.n = frames->leaps.cap = 0;
}

int frames__finish(struct frames *frames, struct call_tree *tree)
{
	struct pass pass = {.frames = frames, .part = PART_NONE};
	size_t room;
	int err = frames->failed ? -ENOMEM : make_room(frames, &room);

	if (err)
		return err;
	frames__end_segment(frames);
	pass.to = frames->calls.v;
	pass.from = frames->calls.v + room;
	err = run(&pass, frames->calls.n - FRAMES_ROOM);
	VEC_FINI(&pass.path);
	if (err)
		return err;
	tree->calls.v = frames->calls.v;
	tree->calls.n = pass.out;
	tree->calls.cap = frames->calls.cap;
	frames->calls.v = NULL;
	frames->calls.cap = 0;
	frames->calls.n = FRAMES_ROOM;
	hand_over_leaps(frames, tree);
	return 0;
}
