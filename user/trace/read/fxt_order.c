// SPDX-License-Identifier: MIT
#include "trace/read/fxt_order.h"

#include <errno.h>
#include <stdlib.h>

#include "util/cleanup.h"

/* A call, as it is to be moved. */
struct moved {
	struct call call;
	struct fxt_place place;
	uint32_t from; /* its index */
};

/* A call by what it is put in order by. */
struct key {
	uint64_t start_ns;
	uint32_t from;
};

#define DIGIT_BITS 11
#define DIGITS	   (1u << DIGIT_BITS)

static uint32_t digit(const struct key *key, unsigned int shift)
{
	return (uint32_t)(key->start_ns >> shift) & (DIGITS - 1);
}

/* By that digit; those of one digit stay as they are to each other. */
static void sort_by_digit(const struct key *from, struct key *to, size_t n, unsigned int shift)
{
	size_t begins[DIGITS] = {0}, at = 0;

	for (size_t i = 0; i < n; i++)
		begins[digit(&from[i], shift)]++;
	for (size_t d = 0; d < DIGITS; d++) {
		size_t count = begins[d];

		begins[d] = at;
		at += count;
	}
	for (size_t i = 0; i < n; i++)
		to[begins[digit(&from[i], shift)]++] = from[i];
}

/*
 * Of events at one time the one that stands first comes first, as it does now. There may be ten
 * million: to sort them by comparing takes ten times as long. NULL: no memory.
 */
static struct key *sort_keys(const struct call_tree *tree)
{
	size_t n = tree->calls.n;
	struct key *keys = malloc((n + 1) * sizeof(*keys)),
		   *other = malloc((n + 1) * sizeof(*keys));
	uint64_t bits = 0;

	for (size_t i = 0; keys && other && i < n; i++) {
		keys[i] = (struct key){tree->calls.v[i].start_ns, (uint32_t)i};
		bits |= keys[i].start_ns;
	}
	for (unsigned int shift = 0; keys && other && shift < 64 && bits >> shift;
	     shift += DIGIT_BITS) {
		struct key *sorted = other;

		sort_by_digit(keys, sorted, n, shift);
		other = keys;
		keys = sorted;
	}
	if (!other) {
		free(keys);
		keys = NULL;
	}
	free(other);
	return keys;
}

static bool is_over(const struct moved *outer, const struct moved *next)
{
	if (outer->call.end_ns != next->call.start_ns)
		return outer->call.end_ns < next->call.start_ns;
	return outer->place.end < next->place.begin;
}

static void nest(struct moved *moved, size_t n)
{
	uint32_t open = CALL_NO_PARENT;

	for (size_t i = 0; i < n; i++) {
		while (open != CALL_NO_PARENT && is_over(&moved[open], &moved[i]))
			open = moved[open].call.parent;
		moved[i].call.parent = open;
		moved[i].call.depth = open == CALL_NO_PARENT ? 0 : moved[open].call.depth + 1;
		/* Whoever wrote the file may not have nested them. */
		if (open != CALL_NO_PARENT && moved[i].call.end_ns > moved[open].call.end_ns)
			moved[i].call.end_ns = moved[open].call.end_ns;
		open = (uint32_t)i;
	}
}

static int compare_done_by(const void *a, const void *b)
{
	const struct done_by *x = a, *y = b;

	if (x->call != y->call)
		return x->call > y->call ? 1 : -1;
	return (x->ns < y->ns) - (x->ns > y->ns);
}

static int compare_waits(const void *a, const void *b)
{
	const struct waits_for *x = a, *y = b;

	return (x->call > y->call) - (x->call < y->call);
}

/* What tells calls by their places. */
static int follow_calls(struct call_tree *tree, const struct moved *moved)
{
	size_t n = tree->calls.n;
	bool any = tree->done_by.n || tree->waits.n;
	_cleanup_free_ uint32_t *to = any ? malloc(n * sizeof(*to)) : NULL;

	if (!any)
		return 0;
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		to[moved[i].from] = (uint32_t)i;
	for (size_t i = 0; i < tree->done_by.n; i++)
		tree->done_by.v[i].call = to[tree->done_by.v[i].call];
	for (size_t i = 0; i < tree->waits.n; i++)
		tree->waits.v[i].call = to[tree->waits.v[i].call];
	VEC_SORT(&tree->done_by, compare_done_by);
	VEC_SORT(&tree->waits, compare_waits);
	return 0;
}

int fxt_order__restore(struct call_tree *tree, const fxt_places *places)
{
	size_t n = tree->calls.n;
	_cleanup_free_ struct key *keys = sort_keys(tree);
	_cleanup_free_ struct moved *moved = keys ? malloc((n + 1) * sizeof(*moved)) : NULL;

	if (!moved)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint32_t from = keys[i].from;

		moved[i] = (struct moved){tree->calls.v[from], places->v[from], from};
	}
	nest(moved, n);
	for (size_t i = 0; i < n; i++)
		tree->calls.v[i] = moved[i].call;
	return follow_calls(tree, moved);
}
