// SPDX-License-Identifier: MIT
#include "stack/stitch/stitch.h"

#include <errno.h>
#include <string.h>

#include "stack/stitch/runs.h"

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
}

static struct held_stack known(const struct stitched *end)
{
	return (struct held_stack){end->stack.v, end->stack.n};
}

static enum seam seam_behind(const struct stitched *end, enum seam seam)
{
	return end->is_old ? SEAM_LONG : seam;
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
static struct stitched *find_outer(struct stitcher *stitcher, struct fit *on)
{
	const struct stitched *last = &stitcher->ends[stitcher->n_ends - 1];
	const struct run *run = &stitcher->runs.v[last->owner];

	if (run->outer != RUN_NONE)
		return NULL;
	for (size_t i = stitcher->n_ends - 1; i-- > 0;)
		if (runs__fits(stitcher, &stitcher->ends[i], run, on))
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
	runs__place_since(stitcher, outer, &joint);
	outer->run = last->run;
	outer->base = last->base - (int64_t)below;
	stitcher->n_ends = (size_t)(outer - stitcher->ends) + 1;
	err = set_stack(outer, below, known(last));
	if (!err && !on->first && last->stack.n)
		held__inherit_return(&outer->stack.v[below], &first);
	return err;
}

/* The last run has shown callers, which may be those of an earlier one, or of callers of that. */
static int find_place(struct stitcher *stitcher)
{
	struct stitched *outer;
	struct fit on;
	int err = 0;

	while (!err && (outer = find_outer(stitcher, &on)))
		err = lie_on(stitcher, outer, &on);
	return err;
}

static int go_on(struct stitcher *stitcher, struct held_stack begin, struct held_stack stack,
		 const struct fit *fit, struct joint *joint)
{
	struct stitched *end = &stitcher->ends[stitcher->n_ends - 1];
	struct held_stack callers = {begin.v, fit->first};
	size_t below = fit->offset > 0 ? (size_t)fit->offset : 0;
	struct held first = end->stack.n ? end->stack.v[below] : (struct held){0};
	int err;

	*joint = (struct joint){.run = end->run,
				.joins = true,
				.n_joined = (uint32_t)(fit->first + fit->n_agreed),
				.base = end->base + fit->offset};
	runs__place_since(stitcher, end, joint);
	err = runs__learn_callers(&stitcher->runs.v[end->owner], callers,
				  fit->first < begin.n ? &begin.v[fit->first] : &first);
	if (err)
		return err;
	err = set_stack(end, below, stack);
	if (fit->offset < 0)
		end->base += fit->offset;
	else if (!err && stack.n)
		held__inherit_return(&end->stack.v[below], &first);
	return err || !callers.n ? err : find_place(stitcher);
}

/* What the segment began with is below the run before it. */
static int go_around(struct stitcher *stitcher, struct held_stack begin, struct held_stack stack,
		     struct joint *joint)
{
	const struct fit fit = {.offset = -(int64_t)begin.n, .first = begin.n};

	return go_on(stitcher, begin, stack, &fit, joint);
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

/* The run that agrees best, the latest first, counted from 1; 0: there is none. */
static size_t find_best(const struct stitcher *stitcher, const struct beginning *begin,
			struct fit *best)
{
	size_t found = 0;

	*best = (struct fit){0};
	for (size_t i = stitcher->n_ends; begin->frames.n && i-- > 0;) {
		const struct stitched *end = &stitcher->ends[i];
		struct fit fit;

		if (!held_stack__fits(known(end), begin->frames, seam_behind(end, begin->seam),
				      &fit) ||
		    fit.n_agreed <= best->n_agreed)
			continue;
		*best = fit;
		found = i + 1;
	}
	return found;
}

/* The best one's frames go up to the last one's: that is what has run on these. */
static bool lies_on(const struct fit *last, const struct fit *best)
{
	size_t top = best->first + best->n_agreed;

	if (last->offset > 0 || last->first < best->first)
		return false;
	return last->is_certain || last->first == top || last->first + 1 == top;
}

/* One that has begun since, if what the segment shows below it is that best one. Else that. */
static size_t find_later(const struct stitcher *stitcher, const struct beginning *begin,
			 size_t found, struct fit *best)
{
	for (size_t i = stitcher->n_ends; found && i-- > found;) {
		const struct stitched *end = &stitcher->ends[i];
		struct fit fit;

		if (!held_stack__fits(known(end), begin->frames, seam_behind(end, begin->seam),
				      &fit) ||
		    !lies_on(&fit, best))
			continue;
		*best = fit;
		return i + 1;
	}
	return found;
}

/* That of the frame that was leapt to, unless what is below it shows that it was another one. */
static size_t find_taken(const struct stitcher *stitcher, const struct beginning *begin,
			 struct fit *fit)
{
	struct waiting taker = begin->taker;

	if (taker.end >= stitcher->n_ends || begin->n_roots >= begin->frames.n)
		return 0;
	*fit = held_stack__lay(known(&stitcher->ends[taker.end]), begin->frames,
			       (int64_t)taker.at - (int64_t)begin->n_roots);
	fit->is_certain = true;
	return fit->first + fit->n_agreed > begin->n_roots ? taker.end + 1 : 0;
}

/* The run that a segment goes on with, counted from 1; 0: there is none. */
static size_t find_end(const struct stitcher *stitcher, const struct beginning *begin,
		       struct fit *fit)
{
	size_t found = find_taken(stitcher, begin, fit);

	if (found)
		return found;
	return find_later(stitcher, begin, find_best(stitcher, begin, fit), fit);
}

struct held_stack stitcher__below(const struct stitcher *stitcher, const struct beginning *begin)
{
	struct fit fit;
	size_t found = find_end(stitcher, begin, &fit);

	if (!found || fit.offset <= 0)
		return (struct held_stack){0};
	return (struct held_stack){stitcher->ends[found - 1].stack.v, (size_t)fit.offset};
}

struct waiting stitcher__find(const struct stitcher *stitcher,
			      bool (*takes)(void *ctx, const struct function *function,
					    uint64_t return_ip),
			      void *ctx)
{
	for (size_t i = stitcher->n_ends; i-- > 0;) {
		const struct stitched *end = &stitcher->ends[i];
		uint64_t return_ip = end->left_ip;

		for (size_t k = end->stack.n; k-- > 0; return_ip = end->stack.v[k].return_ip)
			if (takes(ctx, end->stack.v[k].function, return_ip))
				return (struct waiting){(uint32_t)i, (uint32_t)k};
	}
	return WAITING_NONE;
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
	found = find_end(stitcher, begin, &fit);
	if (found) {
		/* It becomes the last: those behind it are over. */
		stitcher->n_ends = found;
		return go_on(stitcher, begin->frames, end, &fit, joint);
	}
	if (begin->seam == SEAM_LEAP && may_lie_on(stitcher))
		return go_around(stitcher, begin->frames, end, joint);
	return begin_run(stitcher, begin->frames, end, joint);
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

	if (!end || !taken.n || !held_stack__fits(known(end), taken, SEAM_GAP, &fit) ||
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
	return find_place(stitcher);
}
