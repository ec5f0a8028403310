// SPDX-License-Identifier: MIT
#include "stack/stitch/stitch.h"

#include <errno.h>
#include <string.h>

#include "stack/stitch/runs.h"
#include "stack/stitch/search.h"
#include "stack/stitch/sink.h"

void stitcher__fini(struct stitcher *stitcher)
{
	for (size_t i = 0; i < stitcher->runs.n; i++) {
		VEC_FINI(&stitcher->runs.v[i].below);
		VEC_FINI(&stitcher->runs.v[i].begun);
	}
	for (size_t i = 0; i < STITCHED_MAX; i++)
		VEC_FINI(&stitcher->ends[i].stack);
	VEC_FINI(&stitcher->joints);
	VEC_FINI(&stitcher->runs);
	VEC_FINI(&stitcher->loose);
	VEC_FINI(&stitcher->view);
	ways__fini(&stitcher->ways);
}

/* The first n frames that were known stay, and the others are on top of them. */
static int set_stack(struct stitched *end, size_t n, struct held_stack others)
{
	end->is_old = false;
	end->left_ip = 0;
	if (!others.n && n < end->stack.n)
		end->left_ip = end->stack.v[n].return_ip;
	end->stack.n = n;
	for (size_t i = 0; i < others.n; i++) {
		struct held *held = VEC_PUSH(&end->stack);

		if (!held)
			return -ENOMEM;
		*held = others.v[i];
	}
	return 0;
}

/* A place for one more; the oldest, where there are many, is given up. */
static struct stitched *add_end(struct stitcher *stitcher)
{
	struct stitched *ends = stitcher->ends, first = ends[0];

	if (stitcher->n_ends < STITCHED_MAX)
		return &ends[stitcher->n_ends++];
	memmove(ends, ends + 1, (STITCHED_MAX - 1) * sizeof(*ends));
	ends[STITCHED_MAX - 1] = first;
	return &ends[STITCHED_MAX - 1];
}

static int begin_run(struct stitcher *stitcher, struct held_stack begin, struct held_stack stack,
		     struct joint *joint)
{
	uint32_t run = runs__begin(stitcher, begin);
	struct stitched *end;

	if (run == RUN_NONE)
		return -ENOMEM;
	*joint = (struct joint){.run = run};
	end = add_end(stitcher);
	end->run = end->owner = run;
	end->base = 0;
	return set_stack(end, 0, stack);
}

/* The one that the last run, with all of its callers that are known, lies on; NULL: none. */
static struct stitched *find_outer(struct stitcher *stitcher, enum seam seam, struct fit *on)
{
	const struct stitched *last = &stitcher->ends[stitcher->n_ends - 1];
	const struct run *run = &stitcher->runs.v[last->owner];

	if (run->outer != RUN_NONE)
		return NULL;
	for (size_t i = stitcher->n_ends - 1; i-- > 0;)
		if (runs__fits(stitcher, &stitcher->ends[i], run, seam, on))
			return &stitcher->ends[i];
	return NULL;
}

/* The last run lies on frames of that one, and goes on as both. */
static int lie_on(struct stitcher *stitcher, struct stitched *outer, const struct fit *on)
{
	const struct stitched *last = &stitcher->ends[stitcher->n_ends - 1];
	struct run *run = &stitcher->runs.v[last->owner];
	size_t below = on->offset > 0 ? (size_t)on->offset : 0;
	const struct joint joint = {.run = outer->run,
				    .n_joined = (uint32_t)on->n_agreed,
				    .base = outer->base + (int64_t)below};
	struct held first = outer->stack.v[below];
	int err = runs__hand_callers(stitcher, run, &stitcher->runs.v[outer->owner], on->first);

	if (err)
		return err;
	runs__place(stitcher, run, joint.run, joint.base, joint.n_joined);
	err = runs__place_since(stitcher, &joint, outer->base, stitched__stack(outer),
				below + on->n_agreed, stitched__seam(outer, SEAM_SETTLED));
	if (err)
		return err;
	outer->run = last->run;
	outer->base = last->base - (int64_t)below;
	stitcher->n_ends = (size_t)(outer - stitcher->ends) + 1;
	err = set_stack(outer, below, stitched__stack(last));
	if (!err && !on->first && last->stack.n)
		held__inherit_return(&outer->stack.v[below], &first);
	return err;
}

/* The last run has shown callers, which may be those of an earlier one, or of callers of that. */
static int find_place(struct stitcher *stitcher, enum seam seam)
{
	struct stitched *outer;
	struct fit on;
	int err = 0;

	while (!err && (outer = find_outer(stitcher, seam, &on)))
		err = lie_on(stitcher, outer, &on);
	return err;
}

/* Runs since the end lie on the frames of it that have been there all the time, at least. */
static int place_since(struct stitcher *stitcher, const struct stitched *end,
		       const struct joint *joint, const struct beginning *from)
{
	const struct waiting taker = from->taker;
	size_t left = (size_t)(joint->base - end->base + joint->n_joined);
	struct held_stack stack = stitched__stack(end);
	int64_t at = joint->base - end->base + (int64_t)from->n_roots;

	if (from->distance && at >= 0 && at < (int64_t)stack.n) {
		int err = runs__place_at_distance(stitcher, joint, end->base + at, stack,
						  (size_t)at, from->distance);

		if (err)
			return err;
	}
	if (taker.from >= left && taker.from < taker.from_end && taker.from_end <= stack.n) {
		left = taker.from + 1;
		stack.n = taker.from_end;
	}
	return runs__place_since(
		stitcher, joint, end->base, stack, left,
		stitched__seam(end, from->seam == SEAM_LEAP ? SEAM_LEAP : SEAM_SETTLED));
}

static int go_on(struct stitcher *stitcher, const struct beginning *from, struct held_stack stack,
		 const struct fit *fit, struct joint *joint)
{
	struct held_stack begin = from->frames;
	struct stitched *end = &stitcher->ends[stitcher->n_ends - 1];
	struct held_stack callers = {begin.v, fit->first};
	size_t below = fit->offset > 0 ? (size_t)fit->offset : 0;
	struct held first = end->stack.n ? end->stack.v[below] : (struct held){0};
	int err;

	*joint = (struct joint){.run = end->run,
				.joins = true,
				.n_joined = (uint32_t)(fit->first + fit->n_agreed),
				.base = end->base + fit->offset};
	err = place_since(stitcher, end, joint, from);
	if (err)
		return err;
	err = runs__learn_callers(&stitcher->runs.v[end->owner], callers,
				  fit->first < begin.n ? &begin.v[fit->first] : &first);
	if (err)
		return err;
	err = set_stack(end, below, stack);
	if (fit->offset < 0)
		end->base += fit->offset;
	else if (!err && stack.n)
		held__inherit_return(&end->stack.v[below], &first);
	return err || !callers.n ? err : find_place(stitcher, SEAM_GAP);
}

/* Frames that were left between all that the last run has shown and what was leapt to. */
static int64_t count_hidden(const struct stitcher *stitcher, const struct beginning *begin)
{
	const struct stitched *end = &stitcher->ends[stitcher->n_ends - 1];
	const struct joint *left;

	if (stitcher->joints.n < 2 || !begin->distance || begin->n_roots + 1 != begin->frames.n)
		return 0;
	left = &stitcher->joints.v[stitcher->joints.n - 2];
	return left->run == end->run ? end->base - left->base + begin->distance - 1 : 0;
}

/* What the segment began with is below the run before it. */
static int go_around(struct stitcher *stitcher, const struct beginning *begin,
		     struct held_stack stack, struct joint *joint)
{
	const struct fit fit = {.offset = -(int64_t)begin->frames.n, .first = begin->frames.n};
	struct stitched *end = &stitcher->ends[stitcher->n_ends - 1];
	int64_t n = count_hidden(stitcher, begin);

	if (n > 0) {
		if (runs__hide(stitcher, &stitcher->runs.v[end->owner],
			       &begin->frames.v[begin->n_roots], (size_t)n))
			return -ENOMEM;
		end->base -= n;
	}
	return go_on(stitcher, begin, stack, &fit, joint);
}

/*
 * The same, where it shows that the frames which it agrees with are an earlier run's: what was
 * leapt to, and all between, is on those, and below the last run.
 */
static int go_around_on(struct stitcher *stitcher, const struct beginning *begin,
			struct held_stack stack, struct stitched *outer, const struct fit *fit)
{
	struct joint *joint = &stitcher->joints.v[stitcher->joints.n - 1];
	size_t n_ends = stitcher->n_ends;
	int err = go_around(stitcher, begin, stack, joint);

	/* It may have found its place by that. */
	if (err || stitcher->n_ends != n_ends)
		return err;
	return lie_on(stitcher, outer, fit);
}

/* It was leapt to a frame that only this segment shows: none that has waited is that one. */
static bool is_new_taker(const struct stitcher *stitcher, const struct beginning *begin,
			 size_t found, const struct fit *fit)
{
	if (begin->seam != SEAM_LEAP || !found || found == stitcher->n_ends)
		return false;
	return fit->offset >= 0 && fit->first + fit->n_agreed <= begin->n_roots &&
	       stitcher->runs.v[stitcher->ends[stitcher->n_ends - 1].owner].outer == RUN_NONE;
}

/* The last run has callers that no segment has shown. */
static bool may_lie_on(const struct stitcher *stitcher)
{
	const struct stitched *end;

	if (!stitcher->n_ends)
		return false;
	end = &stitcher->ends[stitcher->n_ends - 1];
	return !end->stack.n || !held__is_outermost(end->stack.v);
}

int stitcher__add(struct stitcher *stitcher, const struct beginning *begin, struct held_stack end)
{
	struct joint *joint = VEC_PUSH(&stitcher->joints);
	size_t found;
	struct fit fit;

	if (!joint)
		return -ENOMEM;
	for (size_t i = 0; begin->seam == SEAM_LONG && i < stitcher->n_ends; i++)
		stitcher->ends[i].is_old = true;
	found = stitcher__search(stitcher, begin, &fit);
	stitcher__follow(stitcher, begin, found);
	if (is_new_taker(stitcher, begin, found, &fit))
		return go_around_on(stitcher, begin, end, &stitcher->ends[found - 1], &fit);
	if (found) {
		/* It becomes the last: those behind it are over. */
		stitcher->n_ends = found;
		return go_on(stitcher, begin, end, &fit, joint);
	}
	if (begin->seam == SEAM_LEAP && may_lie_on(stitcher))
		return go_around(stitcher, begin, end, joint);
	return begin_run(stitcher, begin->frames, end, joint);
}

int stitcher__finish(struct stitcher *stitcher)
{
	int err = 0;

	while (stitcher->n_ends > 1 && !err) {
		size_t n = stitcher->n_ends;

		err = find_place(stitcher, SEAM_SETTLED);
		if (stitcher->n_ends < n)
			continue;
		/* It stands by itself: what comes before it does not lie under it. */
		while (stitcher->loose.n &&
		       stitcher->loose.v[stitcher->loose.n - 1] >= stitcher->ends[n - 1].owner)
			stitcher->loose.n--;
		stitcher->n_ends--;
	}
	stitcher->n_ends = stitcher->loose.n = 0;
	return err;
}

const struct held *stitcher__lowest(const struct stitcher *stitcher)
{
	const struct stitched *end =
		stitcher->n_ends ? &stitcher->ends[stitcher->n_ends - 1] : NULL;
	const struct run *run;

	if (!end || !end->stack.n)
		return NULL;
	run = &stitcher->runs.v[end->owner];
	if (run->below.n)
		return &run->below.v[run->below.n - 1];
	return run->begun.n ? run->begun.v : end->stack.v;
}

/* Callers are under all that runs. */
static int put_below(struct stitched *end, struct held_stack callers)
{
	struct held *v;

	for (size_t i = 0; i < callers.n; i++) {
		struct held *last = VEC_PUSH(&end->stack);

		if (!last)
			return -ENOMEM;
	}
	v = end->stack.v;
	memmove(v + callers.n, v, (end->stack.n - callers.n) * sizeof(*v));
	memcpy(v, callers.v, callers.n * sizeof(*v));
	return 0;
}

int stitcher__anchor(struct stitcher *stitcher, struct held_stack taken)
{
	struct stitched *end = stitcher->n_ends ? &stitcher->ends[stitcher->n_ends - 1] : NULL;
	struct held_stack callers;
	struct fit fit;
	int err;

	if (!end || !taken.n || !held_stack__fits(stitched__stack(end), taken, SEAM_GAP, &fit) ||
	    fit.offset >= 0)
		return 0;
	callers = (struct held_stack){taken.v, fit.first};
	err = runs__learn_callers(&stitcher->runs.v[end->owner], callers, &taken.v[fit.first]);
	if (err)
		return err;
	end->stack.v[0].return_ip = taken.v[fit.first].return_ip;
	err = put_below(end, callers);
	if (err)
		return err;
	end->base += fit.offset;
	return find_place(stitcher, SEAM_GAP);
}
