// SPDX-License-Identifier: MIT
#include "stack/parked.h"

#include <errno.h>
#include <string.h>

void parked__fini(struct parked *parked)
{
	VEC_FINI(&parked->strands);
	VEC_FINI(&parked->groups);
}

static int compare_held(const struct held *a, const struct held *b)
{
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return (a->return_ip > b->return_ip) - (a->return_ip < b->return_ip);
}

/* Any order, as long as those that are alike stand together. */
static int compare_pending(const struct strand *a, const struct strand *b)
{
	int order = 0;

	if (a->waits_at != b->waits_at)
		return a->waits_at < b->waits_at ? -1 : 1;
	if (a->is_rootless != b->is_rootless)
		return a->is_rootless - b->is_rootless;
	if (a->pending.n != b->pending.n)
		return a->pending.n < b->pending.n ? -1 : 1;
	for (size_t i = a->pending.n; i-- > 0 && !order;)
		order = compare_held(&a->pending.v[i], &b->pending.v[i]);
	return order;
}

static int compare_strands(const void *a, const void *b)
{
	const struct strand *x = *(struct strand *const *)a, *y = *(struct strand *const *)b;
	int order = compare_pending(x, y);

	if (order)
		return order;
	if (x->since != y->since)
		return x->since < y->since ? 1 : -1;
	return (x->number > y->number) - (x->number < y->number);
}

static int add_group(struct parked *parked, size_t first)
{
	const struct strand *strand = parked->strands.v[first];
	struct parked_group *group = VEC_PUSH(&parked->groups);

	if (!group)
		return -ENOMEM;
	*group = (struct parked_group){
		.pending = {strand->pending.v, strand->pending.n},
		.waits_at = strand->waits_at,
		.slack = strand->slack,
		.is_rootless = strand->is_rootless,
		.first = first,
	};
	return 0;
}

int parked__list(struct parked *parked, struct strands *strands)
{
	for (size_t i = 0; i < strands__count(strands); i++) {
		struct strand *strand = strands__at(strands, i), **at;

		if (strand->state != STRAND_PARKED)
			continue;
		at = VEC_PUSH(&parked->strands);
		if (!at)
			return -ENOMEM;
		*at = strand;
	}
	VEC_SORT(&parked->strands, compare_strands);
	for (size_t i = 0; i < parked->strands.n; i++) {
		if (!i || compare_pending(parked->strands.v[i - 1], parked->strands.v[i]))
			if (add_group(parked, i))
				return -ENOMEM;
		parked->groups.v[parked->groups.n - 1].n++;
	}
	return 0;
}

struct strand *parked__take(struct parked *parked, size_t group)
{
	struct parked_group *taken = &parked->groups.v[group - 1];

	return parked->strands.v[taken->first + taken->n_taken++];
}

/* Nothing that it shows is different from what it had been when it was left. */
static bool has_waited(const struct parked_group *group, struct held_stack begin, uint64_t began_at,
		       const struct fit *fit)
{
	/* On top there is the function that switched. */
	return began_at && group->waits_at && began_at - group->waits_at <= group->slack &&
	       fit->first + fit->n_agreed == begin.n &&
	       (size_t)(fit->offset + (int64_t)begin.n) + 1 == group->pending.n;
}

/* It has shown but the frame that it went on in: the one that had called the switch. */
static bool is_below_switch(struct held_stack a, struct held_stack b)
{
	return b.n == 1 && a.n > 1 && b.v[0].function && a.v[a.n - 2].function == b.v[0].function;
}

static bool fits(const struct parked *parked, size_t group, struct held_stack begin,
		 uint64_t began_at, struct likeness *like)
{
	const struct parked_group *g = &parked->groups.v[group - 1];

	*like = (struct likeness){.group = group};
	if (g->n_taken == g->n)
		return false;
	if (held_stack__fits(g->pending, begin, SEAM_GAP, &like->fit)) {
		like->has_waited = has_waited(g, begin, began_at, &like->fit);
		return true;
	}
	like->fit = (struct fit){.offset = (int64_t)g->pending.n - 2, .n_agreed = 1};
	like->has_waited =
		is_below_switch(g->pending, begin) && has_waited(g, begin, began_at, &like->fit);
	return like->has_waited;
}

/* The same below a frame of b as below one of a. */
static bool is_alike_below(struct held_stack a, int64_t in_a, struct held_stack b, int64_t in_b)
{
	if (in_a != in_b)
		return false;
	for (int64_t i = 0; i < in_a; i++)
		if (a.v[i].function != b.v[i].function)
			return false;
	return true;
}

/* Nobody knows what is below that one: it may be the same as others. */
static bool is_rootless(const struct parked *parked, const struct likeness *like)
{
	return like->fit.offset < 0 ||
	       (!like->fit.offset && parked->groups.v[like->group - 1].is_rootless);
}

/* Above 0: more says that it is a. */
static int compare_evidence(const struct parked *parked, const struct likeness *a,
			    const struct likeness *b)
{
	if (a->fit.n_agreed != b->fit.n_agreed)
		return a->fit.n_agreed > b->fit.n_agreed ? 1 : -1;
	if (is_rootless(parked, a) != is_rootless(parked, b))
		return is_rootless(parked, b) ? 1 : -1;
	return a->has_waited - b->has_waited;
}

static bool is_better(const struct parked *parked, const struct likeness *a,
		      const struct likeness *b)
{
	int compared = compare_evidence(parked, a, b);

	return compared ? compared > 0 : a->fit.distance < b->fit.distance;
}

/* Another one, taken already or not, had the function that alone agrees on other frames. */
static bool has_another(const struct parked *parked, const struct likeness *best)
{
	struct held_stack a = parked->groups.v[best->group - 1].pending;
	const struct function *function = a.v[best->fit.offset].function;

	for (size_t i = 0; i < parked->groups.n; i++) {
		struct held_stack b = parked->groups.v[i].pending;

		for (size_t k = 0; k < b.n; k++)
			if (b.v[k].function == function &&
			    !is_alike_below(a, best->fit.offset, b, (int64_t)k))
				return true;
	}
	return false;
}

/* Another one fits as well, and it would make a difference. */
static bool is_unsure(const struct parked *parked, const struct likeness *best,
		      struct held_stack begin, uint64_t began_at)
{
	struct held_stack a = parked->groups.v[best->group - 1].pending;
	struct likeness other;

	if (is_rootless(parked, best))
		return false;
	if (!best->fit.is_certain && !best->has_waited && has_another(parked, best))
		return true;
	for (size_t i = 1; i <= parked->groups.n; i++)
		if (i != best->group && fits(parked, i, begin, began_at, &other) &&
		    !compare_evidence(parked, &other, best) &&
		    !is_alike_below(a, best->fit.offset, parked->groups.v[i - 1].pending,
				    other.fit.offset))
			return true;
	return false;
}

struct likeness parked__find(const struct parked *parked, struct held_stack begin,
			     uint64_t began_at)
{
	struct likeness best = {0}, like;

	for (size_t i = 1; i <= parked->groups.n; i++)
		if (fits(parked, i, begin, began_at, &like) &&
		    (!best.group || is_better(parked, &like, &best)))
			best = like;
	if (best.group && is_unsure(parked, &best, begin, began_at))
		best.group = 0;
	return best;
}
