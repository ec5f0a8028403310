// SPDX-License-Identifier: MIT
#include "stack/moved/moved.h"

#include <errno.h>
#include <stdlib.h>

#include "stack/moved/splice.h"

/* Return addresses, beside the address where it went on. */
#define AGREED_MIN 1

struct arrival {
	struct newcomer newcomer;
	struct waiter *waiter; /* of its tree */
	uint64_t time_ns;
};

struct joiner {
	struct waiter *waiters;
	size_t n;
	VEC(struct arrival) arrivals;
};

struct candidate {
	struct waiter *waiter; /* NULL: there is none */
	uint32_t wait;
	struct match match;
};

static int compare_arrivals(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->waiter > y->waiter) - (x->waiter < y->waiter);
}

static int list_arrivals(struct joiner *j, struct call_tree *trees)
{
	for (size_t i = 0; i < j->n; i++) {
		struct newcomer newcomer;
		struct arrival *arrival;

		if (!newcomer__init(&newcomer, &trees[i]))
			continue;
		arrival = VEC_PUSH(&j->arrivals);
		if (!arrival)
			return -ENOMEM;
		*arrival = (struct arrival){newcomer, &j->waiters[i], trees[i].calls.v[0].start_ns};
	}
	VEC_SORT(&j->arrivals, compare_arrivals);
	return 0;
}

/* Below a call of it; NULL: nothing is known. */
static const struct call *below(const struct candidate *c, const struct call *call)
{
	const struct call *calls = c->waiter->tree->calls.v;
	const struct call *caller = call->parent == CALL_NO_PARENT ? NULL : &calls[call->parent];

	return caller && !call__is_goexit(caller) ? caller : NULL;
}

static const struct call *lowest(const struct candidate *c)
{
	return &c->waiter->tree->calls.v[c->match.lowest];
}

static bool is_rootless(const struct candidate *c)
{
	const struct call *call = lowest(c);

	for (const struct call *next; (next = below(c, call));)
		call = next;
	return call->flags & CALL_INFERRED_START && !call__is_goexit(call);
}

/* As far as both are known, the same functions below what they have in common with the newcomer. */
static bool is_alike_below(const struct candidate *a, const struct candidate *b)
{
	const struct call *in_a = below(a, lowest(a)), *in_b = below(b, lowest(b));

	for (; in_a && in_b; in_a = below(a, in_a), in_b = below(b, in_b))
		if (in_a->function != in_b->function)
			return false;
	return (in_a || !in_b || is_rootless(a)) && (in_b || !in_a || is_rootless(b));
}

/* Nobody of its own thread has gone on with it. A thread's own stack stays its own. */
static bool is_left(const struct candidate *c)
{
	const struct call_tree *tree = c->waiter->tree;

	return tree->strand && c->wait == tree->calls.n - 1 &&
	       tree->calls.v[c->wait].flags & CALL_INFERRED_END;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (is_rootless(a) != is_rootless(b))
		return is_rootless(b);
	if (is_left(a) != is_left(b))
		return is_left(a);
	return a->waiter->tree->calls.v[a->wait].start_ns >
	       b->waiter->tree->calls.v[b->wait].start_ns;
}

/* Of those that it may be; none, if they have different callers. */
static struct candidate find(const struct joiner *j, const struct arrival *arrival)
{
	struct candidate best = {0};

	for (size_t i = 0; i < j->n; i++) {
		struct candidate c = {.waiter = &j->waiters[i]};

		if (c.waiter == arrival->waiter ||
		    c.waiter->tree->pid != arrival->waiter->tree->pid)
			continue;
		c.wait = waiter__find(c.waiter, arrival->time_ns);
		if (c.wait == CALL_NO_PARENT ||
		    !newcomer__is(&arrival->newcomer, c.waiter->tree, c.wait, &c.match))
			continue;
		if (best.waiter && !is_alike_below(&best, &c))
			return (struct candidate){0};
		if (!best.waiter || is_better(&c, &best))
			best = c;
	}
	return best.match.n_agreed < AGREED_MIN ? (struct candidate){0} : best;
}

/* Callers that the newcomer alone has shown. */
static int add_callers(struct candidate *c, const struct newcomer *newcomer)
{
	struct call_tree *tree = c->waiter->tree;
	call_vec own = {.v = newcomer->tree->calls.v, .n = c->match.n_below};

	return own.n ? splice__below(c->waiter, c->match.lowest, (uint32_t)tree->calls.n, &own) : 0;
}

/* It is one of several: of each what is below is the same. */
static int lend_callers(const struct candidate *c, const struct arrival *arrival)
{
	const struct call *calls = c->waiter->tree->calls.v;
	call_vec callers = {0};
	uint32_t at = c->match.lowest;
	int err;

	callers.n = callers.cap = c->match.n_below ? 0 : calls[at].depth;
	if (!callers.n)
		return 0;
	callers.v = malloc(callers.n * sizeof(*callers.v));
	if (!callers.v)
		return -ENOMEM;
	for (size_t i = callers.n; i-- > 0;)
		callers.v[i] = calls[at = calls[at].parent];
	err = splice__below(arrival->waiter, 0, arrival->newcomer.end, &callers);
	VEC_FINI(&callers);
	return err;
}

static int settle(const struct joiner *j, const struct arrival *arrival)
{
	struct candidate c = find(j, arrival);
	int err;

	if (!c.waiter)
		return 0;
	if (!is_left(&c))
		return lend_callers(&c, arrival);
	err = add_callers(&c, &arrival->newcomer);
	return err ? err : splice__behind(c.waiter, arrival->waiter, &arrival->newcomer);
}

static int join_all(struct joiner *j, struct call_tree *trees)
{
	int err = 0;

	for (size_t i = 0; i < j->n && !err; i++)
		err = waiter__init(&j->waiters[i], &trees[i]);
	for (size_t i = 0; i < j->arrivals.n && !err; i++)
		err = settle(j, &j->arrivals.v[i]);
	return err;
}

int moved__join(struct call_tree *trees, size_t n)
{
	struct joiner j = {.waiters = calloc(n + 1, sizeof(*j.waiters)), .n = n};
	int err = j.waiters ? list_arrivals(&j, trees) : -ENOMEM;

	if (!err && j.arrivals.n)
		err = join_all(&j, trees);
	for (size_t i = 0; i < n && j.waiters; i++)
		waiter__fini(&j.waiters[i]);
	free(j.waiters);
	VEC_FINI(&j.arrivals);
	return err;
}
