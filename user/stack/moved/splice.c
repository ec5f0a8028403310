// SPDX-License-Identifier: MIT
#include "stack/moved/splice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENDS (CALL_INFERRED_END | CALL_CUT_SHORT)

static void end_like(struct call *call, const struct call *other)
{
	call->end_ns = other->end_ns;
	call->left_by = other->left_by;
	call->flags &= (uint8_t)~ENDS;
	call->flags |= (other->flags & ENDS) | CALL_INFERRED;
}

static int make_room(struct call_tree *tree, uint32_t at, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct call *call = VEC_PUSH(&tree->calls);

		if (!call)
			return -ENOMEM;
	}
	memmove(&tree->calls.v[at + n], &tree->calls.v[at],
		(tree->calls.n - n - at) * sizeof(*tree->calls.v));
	return 0;
}

/* What names calls from `at` on, which have moved by n. */
static void shift_names(struct waiter *waiter, uint32_t at, int64_t n)
{
	struct call_tree *tree = waiter->tree;

	for (size_t i = 0; i < waiter->waits.n; i++)
		waiter->waits.v[i] += waiter->waits.v[i] >= at ? (uint32_t)n : 0;
	for (size_t i = 0; i < tree->leaps.n; i++) {
		tree->leaps.v[i].from += tree->leaps.v[i].from >= at ? (uint32_t)n : 0;
		tree->leaps.v[i].to += tree->leaps.v[i].to >= at ? (uint32_t)n : 0;
	}
}

int splice__below(struct waiter *waiter, uint32_t root, uint32_t end, const call_vec *below)
{
	struct call_tree *tree = waiter->tree;
	uint32_t n = (uint32_t)below->n;
	struct call *calls;

	if (make_room(tree, root, n))
		return -ENOMEM;
	calls = tree->calls.v;
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

/* Of each of its calls, what it is in the other tree. */
static uint32_t *map_calls(const struct call_tree *to, const struct newcomer *newcomer)
{
	uint32_t *map = malloc(newcomer->end * sizeof(*map));
	uint32_t at = to->calls.v[to->calls.n - 1].parent;

	if (!map)
		return NULL;
	for (uint32_t i = newcomer->top + 1; i-- > 0;)
		map[i] = at = to->calls.v[at].parent;
	for (uint32_t i = newcomer->top + 1; i < newcomer->end; i++)
		map[i] = (uint32_t)to->calls.n + i - (newcomer->top + 1);
	return map;
}

/* It waits until the newcomer goes on. */
static void end_wait(struct call_tree *to, const struct newcomer *newcomer, const uint32_t *map)
{
	const struct call *own = newcomer->tree->calls.v;
	struct call *calls = to->calls.v, *wait = &calls[to->calls.n - 1];
	struct call *switches = &calls[wait->parent];

	wait->end_ns = switches->end_ns = own[0].start_ns;
	wait->flags &= (uint8_t)~CALL_INFERRED_END;
	switches->flags &= (uint8_t)~CALL_INFERRED_END;
	for (uint32_t i = 0; i <= newcomer->top; i++) {
		end_like(&calls[map[i]], &own[i]);
		calls[map[i]].self_insns += own[i].self_insns;
	}
	for (uint32_t i = calls[map[0]].parent; i != CALL_NO_PARENT; i = calls[i].parent)
		end_like(&calls[i], &own[0]);
}

static int move_calls(struct call_tree *to, const struct newcomer *newcomer, const uint32_t *map)
{
	const struct call *own = newcomer->tree->calls.v;
	uint32_t deeper = to->calls.v[map[0]].depth;

	for (uint32_t i = newcomer->top + 1; i < newcomer->end; i++) {
		struct call *call = VEC_PUSH(&to->calls);

		if (!call)
			return -ENOMEM;
		*call = own[i];
		call->parent = map[call->parent];
		call->depth += deeper;
	}
	return 0;
}

static int compare_leaps(const void *a, const void *b)
{
	const struct leap *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static int move_leaps(struct call_tree *to, const struct newcomer *newcomer, const uint32_t *map)
{
	struct call_tree *tree = newcomer->tree;
	size_t left = 0;

	for (size_t i = 0; i < tree->leaps.n; i++) {
		struct leap *leap = &tree->leaps.v[i], *moved;

		if (leap->from >= newcomer->end || leap->to >= newcomer->end) {
			tree->leaps.v[left++] = *leap;
			continue;
		}
		moved = VEC_PUSH(&to->leaps);
		if (!moved)
			return -ENOMEM;
		*moved = *leap;
		moved->from = map[leap->from];
		moved->to = map[leap->to];
	}
	if (left != tree->leaps.n)
		qsort(to->leaps.v, to->leaps.n, sizeof(*to->leaps.v), compare_leaps);
	tree->leaps.n = left;
	return 0;
}

static int move_waits(struct waiter *to, struct waiter *from, const struct newcomer *newcomer,
		      const uint32_t *map)
{
	size_t left = 0;

	for (size_t i = 0; i < from->waits.n; i++) {
		uint32_t wait = from->waits.v[i], *moved;

		if (wait >= newcomer->end) {
			from->waits.v[left++] = wait;
			continue;
		}
		moved = VEC_PUSH(&to->waits);
		if (!moved)
			return -ENOMEM;
		*moved = map[wait];
	}
	from->waits.n = left;
	return 0;
}

static void leave_tree(struct waiter *from, const struct newcomer *newcomer)
{
	struct call_tree *tree = from->tree;
	uint32_t n = newcomer->end;

	tree->calls.n -= n;
	memmove(tree->calls.v, &tree->calls.v[n], tree->calls.n * sizeof(*tree->calls.v));
	for (size_t i = 0; i < tree->calls.n; i++)
		if (tree->calls.v[i].parent != CALL_NO_PARENT)
			tree->calls.v[i].parent -= n;
	shift_names(from, n, -(int64_t)n);
}

int splice__behind(struct waiter *to, struct waiter *from, const struct newcomer *newcomer)
{
	uint32_t *map = map_calls(to->tree, newcomer);
	int err = map ? call_sites__add_all(&to->tree->sites, &from->tree->sites) : -ENOMEM;

	if (!err) {
		end_wait(to->tree, newcomer, map);
		err = move_calls(to->tree, newcomer, map);
	}
	if (!err)
		err = move_leaps(to->tree, newcomer, map);
	if (!err)
		err = move_waits(to, from, newcomer, map);
	if (!err)
		leave_tree(from, newcomer);
	free(map);
	return err;
}
