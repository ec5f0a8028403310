// SPDX-License-Identifier: MIT
/*
 * Moves the calls into a tree. Unwinds refer to calls before their indices in the tree are known.
 */
#include "stack/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

/* A call of an unwind: its index in the tree is stored in *index. */
struct wanted {
	uint32_t place; /* UINT32_MAX, after the last place: none */
	uint32_t *index;
};

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return (x->place > y->place) - (x->place < y->place);
}

/* Ascending by place, in memory that the caller frees; NULL: no memory. */
static struct wanted *list_wanted(struct frames *frames)
{
	size_t n = 0;
	struct wanted *v = malloc((2 * frames->unwinds.n + 1) * sizeof(*v));

	if (!v)
		return NULL;
	for (size_t i = 0; i < frames->unwinds.n; i++) {
		uint32_t *from = &frames->unwinds.v[i].from, *to = &frames->unwinds.v[i].to;

		v[n++] = (struct wanted){*from, from};
		v[n++] = (struct wanted){*to, to};
	}
	v[n++] = (struct wanted){.place = UINT32_MAX};
	qsort(v, n, sizeof(*v), compare_wanted);
	return v;
}

/*
 * An unwind left a frame that no branch showed, and the frame has been added to the tree since: a
 * caller that was inserted between the two calls of the unwind, and that ends when they do.
 */
static void mark_inserted(const struct call_tree *tree, const struct unwind *unwind)
{
	uint32_t i = unwind->from;

	while (i != CALL_NO_PARENT && i != unwind->to)
		i = tree->calls.v[i].parent;
	if (i == CALL_NO_PARENT)
		return;
	for (i = unwind->from; i != unwind->to; i = tree->calls.v[i].parent) {
		struct call *call = &tree->calls.v[i];

		if (call->left_by || !(call->flags & CALL_INFERRED_END) ||
		    call->end_ns < unwind->start_ns || call->end_ns > unwind->end_ns)
			continue;
		call->left_by = unwind->left_by;
		call->flags |= CALL_CUT_SHORT;
		call->flags &= (uint8_t)~CALL_INFERRED_END;
	}
}

static void hand_over_unwinds(struct frames *frames, struct call_tree *tree)
{
	tree->unwinds.v = frames->unwinds.v;
	tree->unwinds.n = frames->unwinds.n;
	tree->unwinds.cap = frames->unwinds.cap;
	frames->unwinds.v = NULL;
	frames->unwinds.n = frames->unwinds.cap = 0;
	call_tree__sort_unwinds(tree);
	for (size_t i = 0; i < tree->unwinds.n; i++)
		mark_inserted(tree, &tree->unwinds.v[i]);
}

/*
 * Moves the calls, in the order of their begins, into a tree, in one pass. A root is moved to the
 * begin of its part, and puts everything in the part one level deeper. Frames that continue from
 * one segment to the next become one call.
 */

struct pass {
	const struct frames *frames;
	const struct stitcher *stitcher;
	struct call *from; /* where the calls are now; `to` is earlier in the same array */
	struct call *to;
	size_t in, out;		     /* next call to move; where to */
	uint32_t part;		     /* that contains `in` */
	uint32_t deeper;	     /* added to each depth: frames below that were found late */
	uint32_t outside;	     /* depth of what is before the next segment */
	uint32_t n_joined;	     /* of the next calls, how many continue calls on the path */
	uint32_t last;		     /* index of the call that was taken last */
	const struct wanted *wanted; /* the next one */
	size_t segment;		     /* the next one */
	VEC(int64_t) runs;	     /* depth of each run's first segment */
	VEC(uint32_t) path;
};

/* Sets the parent of the call at `out`, from the open path, and adds the call to that. */
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

/* `part` continues the call on the path: both are one activation. */
static void join(struct pass *p, const struct call *part)
{
	const uint8_t ends = CALL_INFERRED_END | CALL_CUT_SHORT;
	struct call *call = &p->to[p->path.v[part->depth]];

	call->end_ns = part->end_ns;
	call->self_insns += part->self_insns;
	call->left_by = part->left_by;
	call->told_at_end = part->told_at_end;
	call->flags &= (uint8_t)~ends;
	call->flags |= (uint8_t)(CALL_INFERRED | (part->flags & ends));
}

static int take_joined(struct pass *p, const struct call *from)
{
	struct call call = *from;

	call.depth += p->deeper;
	p->n_joined--;
	join(p, &call);
	p->last = p->path.v[call.depth];
	return 0;
}

static int take(struct pass *p, const struct call *from)
{
	struct call *to = &p->to[p->out];

	if (p->n_joined)
		return take_joined(p, from);
	*to = *from;
	to->depth += p->deeper;
	p->last = (uint32_t)p->out;
	return put(p, to);
}

static int move_to(struct pass *p, size_t end)
{
	int err = 0;

	for (; p->in < end && !err; p->in++) {
		const struct call *call = &p->from[p->in];

		if (call__is_root(call))
			p->last = call->parent;
		else
			err = take(p, call);
		for (; p->wanted->place == p->in; p->wanted++)
			*p->wanted->index = p->last;
	}
	return err;
}

static void leave_part(struct pass *p)
{
	const struct part *part = &p->frames->parts.v[p->part];

	p->deeper = part->outer == PART_NONE ? p->outside : p->deeper - part->n_roots;
	p->part = part->outer;
}

/* Moves the calls up to `end`, and leaves the parts that have ended by then. */
static int move_out(struct pass *p, size_t end, uint32_t into)
{
	int err = 0;

	while (!err && p->part != into) {
		err = move_to(p, p->frames->parts.v[p->part].end);
		leave_part(p);
	}
	return err ? err : move_to(p, end);
}

static const struct placement *next_placement(const struct pass *p)
{
	return &p->stitcher->placements.v[p->segment];
}

/* The depth of the next segment's first frame. */
static uint32_t depth_of_next(const struct pass *p)
{
	return (uint32_t)(p->runs.v[next_placement(p)->run] + next_placement(p)->base);
}

/* The depth of what is before it: a gap within a run, or callers with which the run begins. */
static uint32_t depth_before(const struct pass *p)
{
	const struct placement *placement = next_placement(p);
	const struct run *run = &p->stitcher->runs.v[placement->run];

	return placement->joins ? depth_of_next(p) + placement->n_joined
				: depth_of_next(p) - (uint32_t)run->below.n;
}

/* Adds callers that only a later segment, or a stack from a trigger, has shown. */
static int put_callers(struct pass *p, const struct part *part)
{
	const struct run *run = &p->stitcher->runs.v[next_placement(p)->run];
	uint32_t depth = depth_before(p);
	int err = 0;

	for (size_t i = run->below.n; i-- > 0 && !err;) {
		struct call *call = &p->to[p->out];

		*call = (struct call){.start_ns = part->start_ns,
				      .end_ns = part->end_ns,
				      .entry_ip = run->below.v[i].entry_ip,
				      .function = run->below.v[i].function,
				      .flags = CALL_INFERRED_START | CALL_INFERRED_END |
					       CALL_INSIDE | CALL_INFERRED,
				      .depth = depth++};
		err = put(p, call);
	}
	return err;
}

/* Continues, in the segment, the frames below all that it shows. */
static void stretch_below(struct pass *p, const struct part *part)
{
	for (uint32_t depth = 0; depth < p->deeper; depth++) {
		struct call *call = &p->to[p->path.v[depth]];

		call->end_ns = part->end_ns;
		call->flags |= CALL_INFERRED;
	}
}

static int enter_segment(struct pass *p, const struct part *part)
{
	const struct placement *placement = next_placement(p);
	int err = placement->joins ? 0 : put_callers(p, part);

	if (err)
		return err;
	p->deeper = depth_of_next(p);
	p->n_joined = placement->n_joined;
	stretch_below(p, part);
	p->segment++;
	return 0;
}

/*
 * Moves the part's roots: each is the caller of the one found before it. A root's new index is
 * stored in its old place: move_to() gives it to unwinds.
 */
static int enter_part(struct pass *p, uint32_t index)
{
	const struct part *part = &p->frames->parts.v[index];
	uint32_t root = part->last_root;
	int err = part->outer == PART_NONE ? enter_segment(p, part) : 0;

	p->part = index;
	for (uint32_t i = 0; i < part->n_roots && !err; i++) {
		struct call call = p->from[root];

		call.depth = part->depth + i;
		err = take(p, &call);
		p->from[root].parent = p->last;
		root -= call.parent;
	}
	p->deeper += part->n_roots;
	return err;
}

/* Finds the depth of each run's first segment. A run is listed after the run that it is on. */
static int place_runs(struct pass *p)
{
	for (size_t i = 0; i < p->stitcher->runs.n; i++) {
		const struct run *run = &p->stitcher->runs.v[i];
		int64_t depth = (int64_t)run->below.n;

		if (run->outer != RUN_NONE)
			depth += p->runs.v[run->outer] + run->base;
		if (VEC_ADD(&p->runs, depth))
			return -ENOMEM;
	}
	return 0;
}

static int run(struct pass *p, size_t end)
{
	const struct frames *frames = p->frames;
	int err = place_runs(p);

	for (uint32_t i = 0; i < frames->parts.n && !err; i++) {
		const struct part *part = &frames->parts.v[i];

		if (part->outer == PART_NONE)
			p->outside = depth_before(p);
		err = move_out(p, part->first, part->outer);
		if (!err)
			err = enter_part(p, i);
	}
	p->outside = 0;
	return err ? err : move_out(p, end, PART_NONE);
}

/* Counts the calls that are added before those that are there. */
static size_t count_callers(const struct frames *frames)
{
	const struct stitcher *stitcher = &frames->stitcher;
	size_t n = 0;

	for (size_t i = 0; i < frames->parts.n; i++)
		n += frames->parts.v[i].n_roots;
	for (size_t i = 0; i < stitcher->runs.n; i++)
		n += stitcher->runs.v[i].below.n;
	return n;
}

/* Makes room before the first call if what has to go there does not fit. */
static int make_room(struct frames *frames, size_t callers, size_t *room)
{
	size_t n = frames->calls.n - FRAMES_ROOM;

	*room = callers > FRAMES_ROOM ? callers : FRAMES_ROOM;
	while (frames->calls.cap < n + *room)
		if (frames__grow(frames))
			return -ENOMEM;
	if (*room > FRAMES_ROOM)
		memmove(&frames->calls.v[*room], &frames->calls.v[FRAMES_ROOM],
			n * sizeof(*frames->calls.v));
	return 0;
}

int frames__finish(struct frames *frames, struct call_tree *tree)
{
	struct pass pass = {.frames = frames, .stitcher = &frames->stitcher, .part = PART_NONE};
	_cleanup_free_ struct wanted *wanted = list_wanted(frames);
	size_t room;
	int err;

	frames__end_segment(frames);
	stitcher__finish(&frames->stitcher);
	frames->failed |= frames->stitcher.failed;
	err = frames->failed ? -ENOMEM : make_room(frames, count_callers(frames), &room);
	if (err || !wanted)
		return -ENOMEM;
	pass.wanted = wanted;
	pass.to = frames->calls.v;
	pass.from = frames->calls.v + room;
	err = run(&pass, frames->calls.n - FRAMES_ROOM);
	VEC_FINI(&pass.path);
	VEC_FINI(&pass.runs);
	if (err)
		return err;
	tree->calls.v = frames->calls.v;
	tree->calls.n = pass.out;
	tree->calls.cap = frames->calls.cap;
	frames->calls.v = NULL;
	frames->calls.cap = 0;
	frames->calls.n = FRAMES_ROOM;
	hand_over_unwinds(frames, tree);
	return 0;
}
