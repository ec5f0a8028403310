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
	uint32_t place; /* the frame.index of the call; UINT32_MAX: the end of the list */
	uint32_t *index;
};

ORDER(by_place, struct wanted, COMPARE(x->place, y->place))

/* Ascending by place, in memory that the caller frees; NULL: no memory. */
static struct wanted *list_wanted(struct frames *frames)
{
	struct wanted *v = malloc((2 * frames->unwinds.n + 1) * sizeof(*v)), *last = v;

	if (!v)
		return NULL;
	VEC_EACH(&frames->unwinds, unwind) {
		*last++ = (struct wanted){unwind->from, &unwind->from};
		*last++ = (struct wanted){unwind->to, &unwind->to};
	}
	*last++ = (struct wanted){.place = UINT32_MAX};
	qsort(v, (size_t)(last - v), sizeof(*v), by_place);
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
	size_t in, out;		     /* next call in `from`; place in `to` for it */
	uint32_t part;		     /* that contains `in` */
	uint32_t deeper;	     /* added to each depth: frames below that were found late */
	uint32_t outside;	     /* depth of a gap or wait before the next segment */
	uint32_t n_joined;	     /* of the next calls, how many continue calls on the path */
	uint32_t last;		     /* index of the call that was taken last */
	const struct wanted *wanted; /* the next call whose new index is wanted */
	size_t segment;		     /* index of the next segment among the placements */
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

static int take(struct pass *p, const struct call *from)
{
	const uint8_t ends = CALL_INFERRED_END | CALL_CUT_SHORT;
	uint32_t depth = from->depth + p->deeper;
	struct call *to = &p->to[p->out];

	if (!p->n_joined) {
		*to = *from;
		to->depth = depth;
		p->last = (uint32_t)p->out;
		return put(p, to);
	}
	/* It continues the call on the path: both are one activation. */
	p->n_joined--;
	p->last = p->path.v[depth];
	to = &p->to[p->last];
	to->end_ns = from->end_ns;
	to->self_insns += from->self_insns;
	to->left_by = from->left_by;
	to->told_at_end = from->told_at_end;
	to->flags &= (uint8_t)~ends;
	to->flags |= (uint8_t)(CALL_INFERRED | (from->flags & ends));
	return 0;
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

/* Moves the calls up to `end`, and leaves the parts that have ended by then. */
static int move_out(struct pass *p, size_t end, uint32_t into)
{
	int err = 0;

	while (!err && p->part != into) {
		const struct part *part = &p->frames->parts.v[p->part];

		err = move_to(p, part->end);
		p->deeper = part->outer == PART_NONE ? p->outside : p->deeper - part->n_roots;
		p->part = part->outer;
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

/*
 * The depth of what is before the next segment: a gap, if the segment joins a run, or the callers
 * with which its run begins.
 */
static uint32_t depth_before(const struct pass *p)
{
	const struct placement *placement = next_placement(p);
	const struct run *run = &p->stitcher->runs.v[placement->run];

	return placement->joins ? depth_of_next(p) + placement->n_joined
				: depth_of_next(p) - (uint32_t)run->below.n;
}

static int enter_segment(struct pass *p, const struct part *part)
{
	const struct placement *placement = next_placement(p);
	const struct run *run = &p->stitcher->runs.v[placement->run];
	uint32_t depth = depth_before(p);

	/* Callers that only a later segment, or a stack from a trigger, has shown. */
	for (size_t i = placement->joins ? 0 : run->below.n; i-- > 0;) {
		struct call *call = &p->to[p->out];

		*call = (struct call){.start_ns = part->start_ns,
				      .end_ns = part->end_ns,
				      .entry_ip = run->below.v[i].entry_ip,
				      .function = run->below.v[i].function,
				      .flags = CALL_INFERRED_START | CALL_INFERRED_END |
					       CALL_INSIDE | CALL_INFERRED,
				      .depth = depth++};
		if (put(p, call))
			return -ENOMEM;
	}
	p->deeper = depth_of_next(p);
	p->n_joined = placement->n_joined;
	/* The frames below all that the segment shows go on in it. */
	for (uint32_t i = 0; i < p->deeper; i++) {
		struct call *call = &p->to[p->path.v[i]];

		call->end_ns = part->end_ns;
		call->flags |= CALL_INFERRED;
	}
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

static int run(struct pass *p, size_t end)
{
	const struct frames *frames = p->frames;
	int err = 0;

	/* A run is listed after the run that it is on. */
	VEC_EACH(&p->stitcher->runs, run) {
		int64_t depth = (int64_t)run->below.n;

		if (run->outer != RUN_NONE)
			depth += p->runs.v[run->outer] + run->base;
		if (VEC_ADD(&p->runs, depth))
			return -ENOMEM;
	}
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

/* Makes room before the first call for those that are added before it, if they do not fit. */
static int make_room(struct frames *frames, size_t *room)
{
	size_t n = frames->calls.n - FRAMES_ROOM, callers = 0;

	VEC_EACH(&frames->parts, part)
		callers += part->n_roots;
	VEC_EACH(&frames->stitcher.runs, run)
		callers += run->below.n;
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

	frames__forget(frames);
	err = frames->failed ? -ENOMEM : make_room(frames, &room);
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
	tree->unwinds.v = frames->unwinds.v;
	tree->unwinds.n = frames->unwinds.n;
	tree->unwinds.cap = frames->unwinds.cap;
	frames->unwinds.v = NULL;
	frames->unwinds.n = frames->unwinds.cap = 0;
	call_tree__sort_unwinds(tree);
	VEC_EACH(&tree->unwinds, unwind)
		mark_inserted(tree, unwind);
	return 0;
}
