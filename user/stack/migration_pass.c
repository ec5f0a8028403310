// SPDX-License-Identifier: MIT
#include "stack/tree_passes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/branch.h"
#include "stack/functions.h"

/*
 * A tree and its CALL_SWITCHED slices, ascending. Each is on top of the frames that were switched
 * out.
 */
struct waiter {
	struct call_tree *tree;
	VEC(uint32_t) waits;
};

/*
 * A stack that its thread resumed without having left it. Its tree begins with it: each of calls 0
 * to `top` had called the next one when the thread continued in `top`. Calls before `end` are on
 * that stack.
 */
struct resumed {
	struct waiter *waiter; /* of its tree */
	uint32_t top, end;
};

/* A stack that waits, and how a resumed one matches it. */
struct candidate {
	struct waiter *waiter; /* NULL: none */
	uint32_t wait;
	uint32_t lowest;   /* its call that is the resumed stack's call number n_below */
	uint32_t n_below;  /* this many of the resumed stack's first calls are below all it shows */
	uint32_t n_agreed; /* number of return addresses that are the same in both */
};

typedef VEC(struct call) call_vec;

static bool was_running(const struct call *call)
{
	return call->kind == CALL_FUNCTION && call->function && call->flags & CALL_INFERRED_START;
}

/* Returns false if the tree does not begin with a stack that was there before. */
static bool find_resumed(struct resumed *resumed, struct waiter *waiter)
{
	const struct call_tree *tree = waiter->tree;
	const struct call *calls = tree->calls.v;
	uint32_t n = (uint32_t)tree->calls.n, top = 0, end = 1;

	if (!tree->coroutine || !n || !was_running(&calls[0]))
		return false;
	while (top + 1 < n && calls[top + 1].parent == top && was_running(&calls[top + 1]) &&
	       calls[top + 1].start_ns == calls[0].start_ns)
		top++;
	/* Its first function. A late root may be below it. */
	if (top + 1 < n && calls[top + 1].parent == top && !calls[top + 1].call_ip &&
	    calls[top + 1].start_ns == calls[0].start_ns)
		return false;
	while (end < n && calls[end].depth)
		end++;
	*resumed = (struct resumed){waiter, top, end};
	return true;
}

/* True if the call returns to ip. Its caller, below it, was first seen when it returned there. */
static bool returns_to(const struct call_tree *tree, const struct call *call, uint64_t ip)
{
	/* A call that a handler has put in where it had interrupted. */
	if (call->kind == CALL_SIGNAL)
		return call->call_ip == ip;
	if (call->call_ip)
		return ip - call->call_ip - CALL_MIN_LEN <= CALL_MAX_LEN - CALL_MIN_LEN;
	return call->parent != CALL_NO_PARENT && tree->calls.v[call->parent].entry_ip == ip;
}

/* Every goroutine returns to this function. It is never called, and is seen at the end only. */
static bool is_goexit(const struct call *call)
{
	return function__is_named(call->function, "runtime.goexit") ||
	       function__is_named(call->function, "runtime.goexit.abi0");
}

/* Returns false if it is another stack. */
static bool may_continue(const struct resumed *resumed, struct candidate *c)
{
	const struct call_tree *tree = c->waiter->tree;
	const struct call *own = resumed->waiter->tree->calls.v, *calls = tree->calls.v;
	uint32_t above = calls[c->wait].parent;

	c->lowest = above;
	for (uint32_t left = resumed->top + 1; left; left--) {
		const struct call *mine = &own[left - 1], *callee = &calls[above];

		if (callee->parent == CALL_NO_PARENT) {
			c->n_below = left;
			return left <= resumed->top && (callee->flags & CALL_INFERRED_START ||
							(left == 1 && is_goexit(&own[0])));
		}
		above = callee->parent;
		if (calls[above].function != mine->function || calls[above].kind > CALL_SIGNAL)
			return false;
		/*
		 * For a tail call it is not known where the function that it replaced was to
		 * return.
		 */
		if (returns_to(tree, callee, mine->entry_ip))
			c->n_agreed += left <= resumed->top;
		else if (!(callee->flags & CALL_BY_JUMP))
			return false;
		c->lowest = above;
	}
	return true;
}

#define ENDS (CALL_INFERRED_END | CALL_CUT_SHORT)

static void end_like(struct call *call, const struct call *other)
{
	call->end_ns = other->end_ns;
	call->left_by = other->left_by;
	call->flags &= (uint8_t)~ENDS;
	call->flags |= (other->flags & ENDS) | CALL_INFERRED;
}

/* Adds n to everything that refers to calls from `at` on. */
static void shift_names(struct waiter *waiter, uint32_t at, int64_t n)
{
	VEC_EACH(&waiter->waits, wait)
		*wait += *wait >= at ? (uint32_t)n : 0;
	VEC_EACH(&waiter->tree->unwinds, unwind) {
		unwind->from += unwind->from >= at ? (uint32_t)n : 0;
		unwind->to += unwind->to >= at ? (uint32_t)n : 0;
	}
}

/*
 * The stack whose calls are `root` to `end` turns out to have these callers below it; the outermost
 * is first. 0 or -ENOMEM.
 */
static int splice_below(struct waiter *waiter, uint32_t root, uint32_t end, const call_vec *below)
{
	struct call_tree *tree = waiter->tree;
	uint32_t n = (uint32_t)below->n;
	size_t n_after = tree->calls.n - root;
	struct call *calls;

	for (uint32_t i = 0; i < n; i++)
		if (VEC_ADD(&tree->calls, (struct call){0}))
			return -ENOMEM;
	calls = tree->calls.v;
	memmove(&calls[root + n], &calls[root], n_after * sizeof(*calls));
	for (uint32_t i = root + n; i < tree->calls.n; i++) {
		if (calls[i].parent != CALL_NO_PARENT)
			calls[i].parent += n;
		calls[i].depth += i < end + n ? n : 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		calls[root + i] = (struct call){
			.start_ns = calls[root + n].start_ns,
			.entry_ip = below->v[i].entry_ip,
			.function = below->v[i].function,
			.flags = CALL_INFERRED_START | CALL_INSIDE,
			.parent = i ? root + i - 1 : CALL_NO_PARENT,
			.depth = i,
		};
		end_like(&calls[root + i], &calls[root + n]);
	}
	calls[root + n].parent = root + n - 1;
	shift_names(waiter, root, n);
	return 0;
}

/* Maps each of the resumed stack's calls to its index in the other tree. */
static uint32_t *map_calls(const struct call_tree *to, const struct resumed *resumed)
{
	uint32_t *map = malloc(resumed->end * sizeof(*map));
	uint32_t at = to->calls.v[to->calls.n - 1].parent;

	if (!map)
		return NULL;
	for (uint32_t i = resumed->top + 1; i-- > 0;)
		map[i] = at = to->calls.v[at].parent;
	for (uint32_t i = resumed->top + 1; i < resumed->end; i++)
		map[i] = (uint32_t)to->calls.n + i - (resumed->top + 1);
	return map;
}

/* Ends the wait when the resumed stack continues. */
static void end_wait(struct call_tree *to, const struct resumed *resumed, const uint32_t *map)
{
	const struct call *own = resumed->waiter->tree->calls.v;
	struct call *calls = to->calls.v, *wait = &calls[to->calls.n - 1];
	struct call *switches = &calls[wait->parent];

	wait->end_ns = switches->end_ns = own[0].start_ns;
	wait->flags &= (uint8_t)~CALL_INFERRED_END;
	switches->flags &= (uint8_t)~CALL_INFERRED_END;
	for (uint32_t i = 0; i <= resumed->top; i++) {
		end_like(&calls[map[i]], &own[i]);
		calls[map[i]].self_insns += own[i].self_insns;
	}
	for (uint32_t i = calls[map[0]].parent; i != CALL_NO_PARENT; i = calls[i].parent)
		end_like(&calls[i], &own[0]);
}

/* Moves the resumed stack's calls, and what refers to them, to the end of the other tree. */
static int move_all(struct waiter *waiter, const struct resumed *resumed, const uint32_t *map)
{
	struct call_tree *from = resumed->waiter->tree, *to = waiter->tree;
	uint32_t deeper = to->calls.v[map[0]].depth;
	size_t n_unwinds = 0, n_waits = 0;

	for (uint32_t i = resumed->top + 1; i < resumed->end; i++) {
		struct call call = from->calls.v[i];

		call.parent = map[call.parent];
		call.depth += deeper;
		if (VEC_ADD(&to->calls, call))
			return -ENOMEM;
	}
	VEC_EACH(&from->unwinds, unwind) {
		struct unwind moved = *unwind;

		if (moved.from >= resumed->end || moved.to >= resumed->end) {
			from->unwinds.v[n_unwinds++] = moved;
			continue;
		}
		moved.from = map[moved.from];
		moved.to = map[moved.to];
		if (VEC_ADD(&to->unwinds, moved))
			return -ENOMEM;
	}
	if (n_unwinds != from->unwinds.n)
		call_tree__sort_unwinds(to);
	from->unwinds.n = n_unwinds;
	VEC_EACH(&resumed->waiter->waits, wait)
		if (*wait >= resumed->end)
			resumed->waiter->waits.v[n_waits++] = *wait;
		else if (VEC_ADD(&waiter->waits, map[*wait]))
			return -ENOMEM;
	resumed->waiter->waits.n = n_waits;
	return 0;
}

/*
 * Moves the resumed stack out of its tree: it continues the stack whose wait is the last call in
 * `to`, and has all of its own callers there. 0 or -ENOMEM.
 */
static int splice_behind(struct waiter *to, const struct resumed *resumed)
{
	struct call_tree *tree = resumed->waiter->tree;
	uint32_t *map = map_calls(to->tree, resumed), n = resumed->end;
	int err = map ? call_sites__add_all(&to->tree->sites, &tree->sites) : -ENOMEM;

	if (!err) {
		end_wait(to->tree, resumed, map);
		err = move_all(to, resumed, map);
	}
	free(map);
	if (err)
		return err;
	tree->calls.n -= n;
	memmove(tree->calls.v, &tree->calls.v[n], tree->calls.n * sizeof(*tree->calls.v));
	VEC_EACH(&tree->calls, call)
		if (call->parent != CALL_NO_PARENT)
			call->parent -= n;
	shift_names(resumed->waiter, n, -(int64_t)n);
	return 0;
}

/* Return addresses that have to agree, in addition to the address where it went on. */
#define AGREED_MIN 1

static uint64_t resumed_at(const struct resumed *resumed)
{
	return resumed->waiter->tree->calls.v[0].start_ns;
}

ORDER(by_time, struct resumed,
      COMPARE(resumed_at(x), resumed_at(y)) ?: COMPARE(x->waiter, y->waiter))

/* The caller of the call; NULL: not known. */
static const struct call *below(const struct candidate *c, const struct call *call)
{
	const struct call *calls = c->waiter->tree->calls.v;
	const struct call *caller = call->parent == CALL_NO_PARENT ? NULL : &calls[call->parent];

	return caller && !is_goexit(caller) ? caller : NULL;
}

static const struct call *lowest(const struct candidate *c)
{
	return &c->waiter->tree->calls.v[c->lowest];
}

static bool is_rootless(const struct candidate *c)
{
	const struct call *call = lowest(c);

	for (const struct call *next; (next = below(c, call));)
		call = next;
	return call->flags & CALL_INFERRED_START && !is_goexit(call);
}

/* True if the functions below the common calls are the same, as far as both are known. */
static bool is_alike_below(const struct candidate *a, const struct candidate *b)
{
	const struct call *in_a = below(a, lowest(a)), *in_b = below(b, lowest(b));

	for (; in_a && in_b; in_a = below(a, in_a), in_b = below(b, in_b))
		if (in_a->function != in_b->function)
			return false;
	return (in_a || !in_b || is_rootless(a)) && (in_b || !in_a || is_rootless(b));
}

/* True if its own thread has not continued it. A thread's own stack stays its own. */
static bool is_left(const struct candidate *c)
{
	const struct call_tree *tree = c->waiter->tree;

	return tree->coroutine && c->wait == tree->calls.n - 1 &&
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

/*
 * The best of the stacks of all n waiters that it may continue; none if they have different
 * callers.
 */
static struct candidate find(struct waiter *waiters, size_t n, const struct resumed *resumed)
{
	uint64_t time_ns = resumed_at(resumed);
	struct candidate best = {0};

	for (size_t i = 0; i < n; i++) {
		struct candidate c = {.waiter = &waiters[i]};
		const struct call *calls = c.waiter->tree->calls.v, *wait;
		size_t n_waits =
			VEC_PARTITION_POINT(&c.waiter->waits, e, calls[*e].start_ns <= time_ns);

		if (!n_waits || c.waiter == resumed->waiter ||
		    c.waiter->tree->pid != resumed->waiter->tree->pid)
			continue;
		/* The slice in which the tree's stack waits at that time. */
		c.wait = c.waiter->waits.v[n_waits - 1];
		wait = &calls[c.wait];
		if ((wait->end_ns <= time_ns && !(wait->flags & CALL_INFERRED_END)) ||
		    !may_continue(resumed, &c))
			continue;
		if (best.waiter && !is_alike_below(&best, &c))
			return (struct candidate){0};
		if (!best.waiter || is_better(&c, &best))
			best = c;
	}
	return best.n_agreed < AGREED_MIN ? (struct candidate){0} : best;
}

/*
 * The match has gone on in its own thread, so this is another stack with the same callers: it gets
 * a copy of these.
 */
static int lend_callers(const struct candidate *c, const struct resumed *resumed)
{
	const struct call *calls = c->waiter->tree->calls.v;
	call_vec callers = {0};
	uint32_t at = c->lowest;
	int err;

	callers.n = callers.cap = c->n_below ? 0 : calls[at].depth;
	if (!callers.n)
		return 0;
	callers.v = malloc(callers.n * sizeof(*callers.v));
	if (!callers.v)
		return -ENOMEM;
	for (size_t i = callers.n; i-- > 0;)
		callers.v[i] = calls[at = calls[at].parent];
	err = splice_below(resumed->waiter, 0, resumed->end, &callers);
	VEC_FINI(&callers);
	return err;
}

static int settle(struct waiter *waiters, size_t n, const struct resumed *resumed)
{
	struct candidate c = find(waiters, n, resumed);
	/* Callers that only the resumed stack has shown. */
	call_vec own = {.v = resumed->waiter->tree->calls.v, .n = c.n_below};
	int err = 0;

	if (!c.waiter)
		return 0;
	if (!is_left(&c))
		return lend_callers(&c, resumed);
	if (own.n)
		err = splice_below(c.waiter, c.lowest, (uint32_t)c.waiter->tree->calls.n, &own);
	return err ? err : splice_behind(c.waiter, resumed);
}

int migration_pass__run(struct call_tree *trees, size_t n)
{
	struct waiter *waiters = calloc(n + 1, sizeof(*waiters));
	VEC(struct resumed) all = {0};
	struct resumed resumed;
	int err = waiters ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		waiters[i].tree = &trees[i];
		if (find_resumed(&resumed, &waiters[i]))
			err = VEC_ADD(&all, resumed);
	}
	VEC_SORT(&all, by_time);
	for (size_t i = 0; i < n && !err && all.n; i++)
		for (uint32_t k = 0; k < trees[i].calls.n && !err; k++)
			if (trees[i].calls.v[k].kind == CALL_SWITCHED &&
			    trees[i].calls.v[k].parent != CALL_NO_PARENT)
				err = VEC_ADD(&waiters[i].waits, k);
	for (size_t i = 0; i < all.n && !err; i++)
		err = settle(waiters, n, &all.v[i]);
	for (size_t i = 0; i < n && waiters; i++)
		VEC_FINI(&waiters[i].waits);
	free(waiters);
	VEC_FINI(&all);
	return err;
}
