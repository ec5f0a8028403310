// SPDX-License-Identifier: MIT
#include "stack/stack_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The stacks of a thread that were there before a gap, and which of them one is that went on behind
 * it: by the frames that it shows, and the addresses that they return to.
 */
/* Coroutines that cannot be told apart: the same frames, and they wait at the same address. */
struct parked_group {
	struct held_stack pending;
	uint64_t waits_at; /* 0: they did not wait */
	uint8_t slack;	   /* or so many bytes behind it */
	bool is_rootless;
	size_t first, n_taken; /* in parked.coroutines */
	size_t n;
};

struct parked {
	VEC(struct coroutine *) coroutines; /* a group's together, the one that waited last first */
	VEC(struct parked_group) groups;
};

/* How well a group fits. */
struct likeness {
	size_t group; /* counted from 1; 0: none fits, or several do that are different below */
	struct fit fit;
	bool has_waited; /* and has not moved since */
};

static void fini_parked(struct parked *parked)
{
	VEC_FINI(&parked->coroutines);
	VEC_FINI(&parked->groups);
}

static int compare_held(const struct held *a, const struct held *b)
{
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return (a->return_ip > b->return_ip) - (a->return_ip < b->return_ip);
}

/* Any order, as long as those that are alike stand together. */
static int compare_pending(const struct coroutine *a, const struct coroutine *b)
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

static int compare_coroutines(const void *a, const void *b)
{
	const struct coroutine *x = *(struct coroutine *const *)a,
			       *y = *(struct coroutine *const *)b;
	int order = compare_pending(x, y);

	if (order)
		return order;
	if (x->since != y->since)
		return x->since < y->since ? 1 : -1;
	return (x->number > y->number) - (x->number < y->number);
}

static int add_group(struct parked *parked, size_t first)
{
	const struct coroutine *coroutine = parked->coroutines.v[first];
	const struct parked_group group = {.pending = {coroutine->pending.v, coroutine->pending.n},
					   .waits_at = coroutine->waits_at,
					   .slack = coroutine->slack,
					   .is_rootless = coroutine->is_rootless,
					   .first = first};

	return VEC_ADD(&parked->groups, group);
}

/* 0 or -ENOMEM. The coroutines' `pending` must outlive it. */
static int list_parked(struct parked *parked, struct coroutines *coroutines)
{
	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (coroutine->state == COROUTINE_PARKED && VEC_ADD(&parked->coroutines, coroutine))
			return -ENOMEM;
	}
	VEC_SORT(&parked->coroutines, compare_coroutines);
	for (size_t i = 0; i < parked->coroutines.n; i++) {
		if (!i || compare_pending(parked->coroutines.v[i - 1], parked->coroutines.v[i]))
			if (add_group(parked, i))
				return -ENOMEM;
		parked->groups.v[parked->groups.n - 1].n++;
	}
	return 0;
}

/* One of that group, which is not to be found again. */
static struct coroutine *take_parked(struct parked *parked, size_t group)
{
	struct parked_group *taken = &parked->groups.v[group - 1];

	return parked->coroutines.v[taken->first + taken->n_taken++];
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
	if (held_stack__fits(g->pending, begin, BOUNDARY_GAP, &like->fit)) {
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

/*
 * One that began with these frames, to which a switch to began_at went (0: it ran when the gap
 * ended).
 */
static struct likeness find_parked(const struct parked *parked, struct held_stack begin,
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

/*
 * Behind a gap it is not known which of a thread's stacks runs, nor what the others have done in
 * it. So what runs until the next gap is held apart: each stack as if the trace began there. Then
 * those are joined to the stacks from before whose frames, and the addresses that they return to,
 * are the ones that they have shown. What has shown too little stands by itself.
 */

void stack__end_wait(struct stack *s, struct coroutine *coroutine, uint64_t time_ns,
		     bool has_waited)
{
	struct frames *frames = coroutines__frames_of(&s->coroutines, coroutine);

	if (!frames->open.n) {
		if (time_ns > coroutine->left_ns)
			frames__add_wait(frames, coroutine->left_ns, time_ns);
		return;
	}
	if (has_waited) {
		frames__pop(frames, time_ns, 0); /* the slice of the time switched out */
		frames__pop(frames, time_ns, 0);
	}
	frames__pop_to(frames, NULL, time_ns, CALL_INFERRED_END);
	frames__end_segment(frames);
}

void stack__join(struct stack *s, struct coroutine *loose, struct coroutine *coroutine,
		 bool has_waited)
{
	struct coroutines *coroutines = &s->coroutines;
	struct frames *to = coroutines__frames_of(coroutines, coroutine), *from = &loose->frames;

	stack__end_wait(s, coroutine, from->parts.v[0].start_ns, has_waited);
	if (frames__append(to, from, has_waited ? BOUNDARY_WAIT : BOUNDARY_GAP))
		to->failed = true;
	coroutine->state = loose->state;
	coroutine->waits_at = loose->waits_at;
	coroutine->slack = loose->slack;
	coroutine->since = loose->since;
	coroutine->generation = loose->generation;
	coroutine->is_goroutine |= loose->is_goroutine;
	coroutine->is_fiber |= loose->is_fiber;
	loose->state = COROUTINE_OVER;
	loose->is_loose = false;
	if (coroutines->running == loose)
		coroutines->running = coroutine;
	coroutines->has_mark = false;
	s->frames = coroutines__frames_of(coroutines, coroutines->running);
}

struct ranked {
	struct coroutine *loose;
	size_t n_agreed;
};
typedef VEC(struct ranked) ranked_vec;

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->n_agreed != y->n_agreed)
		return x->n_agreed < y->n_agreed ? 1 : -1;
	return (x->loose->number > y->loose->number) - (x->loose->number < y->loose->number);
}

static struct likeness choose(const struct parked *parked, struct coroutine *loose)
{
	return find_parked(parked, frames__show_begin(&loose->frames), loose->began_at);
}

/* Those first of which most is known: what is left may be the only one that others can be. */
static int rank(struct coroutines *coroutines, const struct parked *parked, ranked_vec *all)
{
	for (size_t i = 0; i < coroutines->others.n; i++) {
		struct coroutine *loose = coroutines->others.v[i];

		if (loose->is_loose &&
		    VEC_ADD(all, (struct ranked){loose, choose(parked, loose).fit.n_agreed}))
			return -ENOMEM;
	}
	VEC_SORT(all, compare_ranked);
	return 0;
}

void stack__find_coroutines(struct stack *s, const struct segment_end *end)
{
	struct coroutines *coroutines = &s->coroutines;
	struct parked parked = {0};
	ranked_vec all = {0};

	stack__settle_system(s);
	if (list_parked(&parked, coroutines) || rank(coroutines, &parked, &all))
		s->frames->failed = true;
	for (size_t i = 0; i < all.n; i++) {
		struct likeness like = choose(&parked, all.v[i].loose);

		if (like.group)
			stack__join(s, all.v[i].loose, take_parked(&parked, like.group),
				    like.has_waited);
	}
	VEC_FINI(&all);
	fini_parked(&parked);
}
