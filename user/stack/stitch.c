// SPDX-License-Identifier: MIT
#include "stack/stitch.h"

#include <errno.h>
#include <string.h>

void stitcher__fini(struct stitcher *stitcher)
{
	for (size_t i = 0; i < stitcher->runs.n; i++)
		VEC_FINI(&stitcher->runs.v[i].below);
	VEC_FINI(&stitcher->joints);
	VEC_FINI(&stitcher->runs);
	VEC_FINI(&stitcher->stack);
}

/* Frames that are compared to find where one stack lies on another: recursion may be deep. */
#define MAX_COMPARED 64

/* How one stack lies on another: b[k] is a[k + offset], for as many frames as agree. */
struct fit {
	int64_t offset;
	size_t first;	 /* the lowest of b that has one in a */
	size_t n_agreed; /* from there on */
	size_t distance; /* between the tops */
};

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

static bool agrees(const struct held *a, const struct held *b)
{
	return a->function && a->function == b->function && a->return_ip &&
	       a->return_ip == b->return_ip;
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
	if (a.v[i].return_ip && b.v[k].return_ip && a.v[i].return_ip != b.v[k].return_ip)
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
static bool is_enough(struct held_stack a, struct held_stack b, const struct fit *fit,
		      bool may_be_far)
{
	const struct function *function;

	if (fit->n_agreed != 1)
		return fit->n_agreed > 1;
	function = b.v[fit->first].function;
	if (is_outermost(function))
		return true;
	return !may_be_far && count(a, function) == 1 && count(b, function) == 1;
}

static bool find_fit(struct held_stack a, struct held_stack b, bool may_be_far, struct fit *best)
{
	*best = (struct fit){0};
	for (int64_t offset = 1 - (int64_t)b.n; offset < (int64_t)a.n; offset++) {
		struct fit fit = lay(a, b, offset, MAX_COMPARED);

		if (is_better(&fit, best))
			*best = fit;
	}
	if (best->n_agreed == MAX_COMPARED)
		*best = lay(a, b, best->offset, SIZE_MAX);
	return is_enough(a, b, best, may_be_far);
}

static struct held_stack known(const struct stitcher *stitcher)
{
	return (struct held_stack){stitcher->stack.v, stitcher->stack.n};
}

/* What b shows of callers under all of a. */
static int learn_callers(struct stitcher *stitcher, struct held_stack b, const struct fit *fit)
{
	struct run *run = &stitcher->runs.v[stitcher->runs.n - 1];

	for (size_t k = fit->first; k-- > 0;) {
		struct held *held = VEC_PUSH(&run->below);

		if (!held)
			return -ENOMEM;
		*held = b.v[k];
	}
	return 0;
}

/* The first n frames that were known stay, and the others are on top of them. */
static int set_stack(struct stitcher *stitcher, size_t n, struct held_stack others)
{
	stitcher->stack.n = n;
	for (size_t i = 0; i < others.n; i++) {
		struct held *held = VEC_PUSH(&stitcher->stack);

		if (!held)
			return -ENOMEM;
		*held = others.v[i];
	}
	return 0;
}

static int begin_run(struct stitcher *stitcher, struct held_stack end)
{
	struct run *run = VEC_PUSH(&stitcher->runs);

	if (!run)
		return -ENOMEM;
	*run = (struct run){.n_segments = 1};
	stitcher->base = 0;
	return set_stack(stitcher, 0, end);
}

static int go_on(struct stitcher *stitcher, struct held_stack begin, struct held_stack end,
		 const struct fit *fit, struct joint *joint)
{
	size_t below = fit->offset > 0 ? (size_t)fit->offset : 0;
	uint64_t return_ip = stitcher->stack.v[below].return_ip;
	int err = learn_callers(stitcher, begin, fit);

	if (err)
		return err;
	stitcher->runs.v[stitcher->runs.n - 1].n_segments++;
	*joint = (struct joint){.joins = true,
				.n_joined = (uint32_t)(fit->first + fit->n_agreed),
				.base = stitcher->base + fit->offset};
	err = set_stack(stitcher, below, end);
	/* The first of the segment has no return of its own yet. */
	if (!err && fit->offset >= 0 && end.n && !stitcher->stack.v[below].return_ip)
		stitcher->stack.v[below].return_ip = return_ip;
	if (fit->offset < 0)
		stitcher->base += fit->offset;
	return err;
}

int stitcher__add(struct stitcher *stitcher, struct held_stack begin, struct held_stack end,
		  bool may_be_far)
{
	struct joint *joint = VEC_PUSH(&stitcher->joints);
	struct fit fit;

	if (!joint)
		return -ENOMEM;
	*joint = (struct joint){0};
	if (begin.n && stitcher->stack.n && find_fit(known(stitcher), begin, may_be_far, &fit))
		return go_on(stitcher, begin, end, &fit, joint);
	return begin_run(stitcher, end);
}

/* Callers are under all that runs. */
static int put_below(struct stitcher *stitcher, struct held_stack callers)
{
	struct held *v;

	for (size_t i = 0; i < callers.n; i++) {
		struct held *last = VEC_PUSH(&stitcher->stack);

		if (!last)
			return -ENOMEM;
	}
	v = stitcher->stack.v;
	memmove(v + callers.n, v, (stitcher->stack.n - callers.n) * sizeof(*v));
	memcpy(v, callers.v, callers.n * sizeof(*v));
	return 0;
}

int stitcher__anchor(struct stitcher *stitcher, struct held_stack taken)
{
	struct fit fit;
	int err;

	if (!taken.n || !stitcher->stack.n || !find_fit(known(stitcher), taken, false, &fit) ||
	    fit.offset >= 0)
		return 0;
	err = learn_callers(stitcher, taken, &fit);
	if (err)
		return err;
	stitcher->stack.v[0].return_ip = taken.v[fit.first].return_ip;
	stitcher->base += fit.offset;
	return put_below(stitcher, (struct held_stack){taken.v, fit.first});
}
