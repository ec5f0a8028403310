// SPDX-License-Identifier: MIT
#include "stack/stitch.h"

#include <errno.h>
#include <string.h>

void stitcher__fini(struct stitcher *stitcher)
{
	for (size_t i = 0; i < stitcher->runs.n; i++)
		VEC_FINI(&stitcher->runs.v[i].below);
	for (size_t i = 0; i < STITCHED_MAX; i++)
		VEC_FINI(&stitcher->ends[i].stack);
	VEC_FINI(&stitcher->joints);
	VEC_FINI(&stitcher->runs);
}

/* Frames that are compared to find where one stack lies on another: recursion may be deep. */
#define MAX_COMPARED 64

/* Runs once, below everything: two of them are the same activation. */
static bool is_outermost(const struct function *function)
{
	static const char *const names[] = {"main", "_start", "__libc_start_call_main",
					    "start_thread", "clone3"};

	for (size_t i = 0; function && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(function->raw_name ? function->raw_name : function->name, names[i]))
			return true;
	return false;
}

static size_t count(struct held_stack stack, const struct function *function)
{
	size_t n = 0;

	for (size_t i = 0; i < stack.n; i++)
		n += stack.v[i].function == function;
	return n;
}

static bool return_alike(const struct held *a, const struct held *b)
{
	return a->return_ip <= b->return_ip + b->slack && b->return_ip <= a->return_ip + a->slack;
}

static bool agrees(const struct held *a, const struct held *b)
{
	return a->function && a->function == b->function && a->return_ip && return_alike(a, b);
}

static struct fit lay(struct held_stack a, struct held_stack b, int64_t offset, size_t limit)
{
	struct fit fit = {.offset = offset, .first = offset < 0 ? (size_t)-offset : 0};
	int64_t tops = ((int64_t)a.n - 1) - ((int64_t)b.n - 1 + offset);
	size_t k = fit.first, i = (size_t)((int64_t)k + offset);

	fit.distance = (size_t)(tops < 0 ? -tops : tops);
	/* Of the lower of the two it is not known where it returns to. */
	if (!a.v[i].function || a.v[i].function != b.v[k].function)
		return fit;
	if (a.v[i].return_ip && b.v[k].return_ip && !return_alike(&a.v[i], &b.v[k]))
		return fit;
	do {
		fit.n_agreed++;
		k++, i++;
	} while (fit.n_agreed < limit && k < b.n && i < a.n && agrees(&a.v[i], &b.v[k]));
	return fit;
}

static bool is_better(const struct fit *fit, const struct fit *best)
{
	if (fit->n_agreed != best->n_agreed)
		return fit->n_agreed > best->n_agreed;
	return fit->n_agreed && fit->distance < best->distance;
}

/*
 * One frame whose function alone agrees says little: it must be the only one that can be meant, and
 * not much can have happened.
 */
static bool is_enough(struct held_stack a, struct held_stack b, struct fit *fit, enum seam seam)
{
	const struct function *function;

	if (!fit->n_agreed)
		return false;
	function = b.v[fit->first].function;
	fit->is_certain = fit->n_agreed > 1 || is_outermost(function);
	if (fit->is_certain)
		return true;
	/* Exceptions are taken by the innermost frame that can; switches are the innermost. */
	if ((seam == SEAM_LEAP || seam == SEAM_WAIT) && fit->offset >= 0)
		return true;
	return seam != SEAM_LONG && count(a, function) == 1 && count(b, function) == 1;
}

bool held_stack__fits(struct held_stack a, struct held_stack b, enum seam seam, struct fit *best)
{
	*best = (struct fit){0};
	if (!a.n)
		return false;
	for (int64_t offset = 1 - (int64_t)b.n; offset < (int64_t)a.n; offset++) {
		struct fit fit = lay(a, b, offset, MAX_COMPARED);

		if (is_better(&fit, best))
			*best = fit;
	}
	if (best->n_agreed == MAX_COMPARED)
		*best = lay(a, b, best->offset, SIZE_MAX);
	return is_enough(a, b, best, seam);
}

static struct held_stack known(const struct stitched *end)
{
	return (struct held_stack){end->stack.v, end->stack.n};
}

/* Callers under all of the run. */
static int learn_callers(struct run *run, struct held_stack b)
{
	for (size_t k = b.n; k-- > 0;) {
		struct held *held = VEC_PUSH(&run->below);

		if (!held)
			return -ENOMEM;
		*held = b.v[k];
	}
	return 0;
}

/* The first n frames that were known stay, and the others are on top of them. */
static int set_stack(struct stitched *end, size_t n, struct held_stack others)
{
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

static int begin_run(struct stitcher *stitcher, struct held_stack stack, struct joint *joint)
{
	struct run *run = VEC_PUSH(&stitcher->runs);
	struct stitched *end;

	if (!run)
		return -ENOMEM;
	*run = (struct run){.outer = RUN_NONE};
	*joint = (struct joint){.run = (uint32_t)(stitcher->runs.n - 1)};
	end = add_end(stitcher);
	end->run = end->owner = joint->run;
	end->base = 0;
	return set_stack(end, 0, stack);
}

/* Runs since then lie on the frames that go on behind them. */
static void put_inside(struct stitcher *stitcher, const struct joint *joint)
{
	for (size_t i = joint->run + 1; i < stitcher->runs.n; i++) {
		struct run *run = &stitcher->runs.v[i];

		if (run->outer != RUN_NONE)
			continue;
		run->outer = joint->run;
		run->base = joint->base + joint->n_joined;
	}
}

/* The first of a segment has no return of its own yet. */
static void inherit_return(struct held *held, const struct held *from)
{
	if (held->return_ip)
		return;
	held->return_ip = from->return_ip;
	held->slack = from->slack;
}

/* The one that the callers which b shows under the last run are of; NULL: none. */
static struct stitched *find_outer(struct stitcher *stitcher, struct held_stack b, struct fit *on)
{
	const struct stitched *last = &stitcher->ends[stitcher->n_ends - 1];

	if (stitcher->runs.v[last->run].outer != RUN_NONE)
		return NULL;
	for (size_t i = stitcher->n_ends - 1; b.n && i-- > 0;)
		if (held_stack__fits(known(&stitcher->ends[i]), b, SEAM_LONG, on) &&
		    on->offset >= 0)
			return &stitcher->ends[i];
	return NULL;
}

/* The last run lies on frames of that one, and goes on as both. */
static int lie_on(struct stitcher *stitcher, struct stitched *outer, struct held_stack callers,
		  struct held_stack stack, const struct fit *on)
{
	const struct stitched *last = &stitcher->ends[stitcher->n_ends - 1];
	const struct joint joint = {.run = outer->run,
				    .n_joined = (uint32_t)on->n_agreed,
				    .base = outer->base + on->offset};
	struct held first = outer->stack.v[on->offset];
	struct run *run = &stitcher->runs.v[last->run];
	int err = learn_callers(
		run, (struct held_stack){callers.v + on->n_agreed, callers.n - on->n_agreed});

	if (err)
		return err;
	put_inside(stitcher, &joint);
	outer->base -= (int64_t)run->below.n + run->base;
	outer->run = last->run;
	stitcher->n_ends = (size_t)(outer - stitcher->ends) + 1;
	err = set_stack(outer, (size_t)on->offset, stack);
	if (!err && stack.n)
		inherit_return(&outer->stack.v[on->offset], &first);
	return err;
}

static int go_on(struct stitcher *stitcher, struct held_stack begin, struct held_stack stack,
		 const struct fit *fit, struct joint *joint)
{
	struct stitched *end = &stitcher->ends[stitcher->n_ends - 1], *outer;
	struct held_stack callers = {begin.v, fit->first};
	size_t below = fit->offset > 0 ? (size_t)fit->offset : 0;
	struct held first = end->stack.n ? end->stack.v[below] : (struct held){0};
	struct fit on;
	int err;

	*joint = (struct joint){.run = end->run,
				.joins = true,
				.n_joined = (uint32_t)(fit->first + fit->n_agreed),
				.base = end->base + fit->offset};
	put_inside(stitcher, joint);
	outer = find_outer(stitcher, callers, &on);
	if (outer)
		return lie_on(stitcher, outer, callers, stack, &on);
	err = learn_callers(&stitcher->runs.v[end->owner], callers);
	if (!err)
		err = set_stack(end, below, stack);
	if (!err && fit->offset >= 0 && stack.n)
		inherit_return(&end->stack.v[below], &first);
	if (fit->offset < 0)
		end->base += fit->offset;
	return err;
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
	return !end->stack.n || !is_outermost(end->stack.v[0].function);
}

/* The run that agrees best, the latest first, counted from 1; 0: there is none. */
static size_t find_end(const struct stitcher *stitcher, struct held_stack begin, enum seam seam,
		       struct fit *best)
{
	size_t found = 0;

	*best = (struct fit){0};
	for (size_t i = stitcher->n_ends; begin.n && i-- > 0;) {
		struct fit fit;

		if (!held_stack__fits(known(&stitcher->ends[i]), begin, seam, &fit) ||
		    fit.n_agreed <= best->n_agreed)
			continue;
		*best = fit;
		found = i + 1;
	}
	return found;
}

struct held_stack stitcher__below(const struct stitcher *stitcher, struct held_stack begin,
				  enum seam seam)
{
	struct fit fit;
	size_t found = find_end(stitcher, begin, seam, &fit);

	if (!found || fit.offset <= 0)
		return (struct held_stack){0};
	return (struct held_stack){stitcher->ends[found - 1].stack.v, (size_t)fit.offset};
}

int stitcher__add(struct stitcher *stitcher, struct held_stack begin, struct held_stack end,
		  enum seam seam)
{
	struct joint *joint = VEC_PUSH(&stitcher->joints);
	size_t found;
	struct fit fit;

	if (!joint)
		return -ENOMEM;
	found = find_end(stitcher, begin, seam, &fit);
	if (found) {
		/* It becomes the last: those behind it are over. */
		stitcher->n_ends = found;
		return go_on(stitcher, begin, end, &fit, joint);
	}
	if (seam == SEAM_LEAP && may_lie_on(stitcher))
		return go_around(stitcher, begin, end, joint);
	return begin_run(stitcher, end, joint);
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
	struct stitched *outer;
	struct held_stack callers;
	struct fit fit, on;
	int err;

	if (!end || !taken.n || !held_stack__fits(known(end), taken, SEAM_GAP, &fit) ||
	    fit.offset >= 0)
		return 0;
	callers = (struct held_stack){taken.v, fit.first};
	outer = find_outer(stitcher, callers, &on);
	end->stack.v[0].return_ip = taken.v[fit.first].return_ip;
	err = put_below(end, callers);
	if (err)
		return err;
	if (outer)
		return lie_on(stitcher, outer, callers, known(end), &on);
	end->base += fit.offset;
	return learn_callers(&stitcher->runs.v[end->owner], callers);
}
