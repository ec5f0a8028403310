/* SPDX-License-Identifier: MIT */
/* A call tree as text, and what must be true of every one. */
#ifndef MTBPF_TESTS_TREE_TEXT_H
#define MTBPF_TESTS_TREE_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "stack/call_tree.h"

static inline void print_call(FILE *out, const struct call *call)
{
	static const char *const flags[] = {
		"inferred-start", "inferred-end", "by-jump", "cut", NULL, "inferred"};

	fprintf(out, "%*s%s %" PRIu64 "-%" PRIu64, (int)(2 * call->depth), "", call__name(call),
		call->start_ns, call->end_ns);
	if (call->kind == CALL_SIGNAL)
		fprintf(out, " signal");
	for (int i = 0; i < 6; i++)
		if (call->flags >> i & 1 && flags[i])
			fprintf(out, " %s", flags[i]);
	if (call->left_by)
		fprintf(out, " by-%s", left_by__name(call->left_by));
	fputc('\n', out);
}

/* Pre-order, and intervals that nest. */
static inline void assert_well_formed(const struct call_tree *tree)
{
	const struct call *calls = tree->calls.v;
	uint64_t *busy_until = calloc(tree->calls.n + 1, sizeof(*busy_until));
	uint64_t roots_until = 0;
	uint32_t open = CALL_NO_PARENT;

	assert_non_null(busy_until);
	for (uint32_t i = 0; i < tree->calls.n; i++) {
		const struct call *c = &calls[i];
		uint64_t *until = c->parent == CALL_NO_PARENT ? &roots_until : NULL;

		assert_true(c->start_ns <= c->end_ns);
		/* The parent is one of those that the walk is inside of. */
		while (open != c->parent && open != CALL_NO_PARENT)
			open = calls[open].parent;
		assert_int_equal(open, c->parent);
		open = i;
		if (!until) {
			const struct call *parent = &calls[c->parent];

			assert_int_equal(c->depth, parent->depth + 1);
			assert_true(c->start_ns >= parent->start_ns);
			assert_true(c->end_ns <= parent->end_ns);
			until = &busy_until[c->parent];
		} else {
			assert_int_equal(c->depth, 0);
		}
		assert_true(c->start_ns >= *until);
		*until = c->end_ns;
	}
	free(busy_until);
}

static inline bool has_gap(const struct call_tree *tree)
{
	for (size_t i = 0; i < tree->calls.n; i++)
		if (tree->calls.v[i].kind == CALL_GAP)
			return true;
	return false;
}

/* From a call to one of its callers, as far as those are known, in the order of their begins. */
static inline void assert_unwinds_well_formed(const struct call_tree *tree)
{
	for (size_t i = 0; i < tree->unwinds.n; i++) {
		const struct unwind *unwind = &tree->unwinds.v[i];
		uint32_t caller = unwind->from;

		assert_true(unwind->from < tree->calls.n && unwind->to < tree->calls.n);
		while (caller != CALL_NO_PARENT && caller != unwind->to)
			caller = tree->calls.v[caller].parent;
		assert_true(caller == unwind->to || has_gap(tree));
		assert_true(unwind->start_ns >= tree->calls.v[unwind->from].start_ns);
		assert_true(unwind->end_ns >= tree->calls.v[unwind->from].end_ns);
		assert_true(unwind->end_ns <= tree->calls.v[unwind->to].end_ns);
		assert_true(!i || tree->unwinds.v[i - 1].from <= unwind->from);
	}
}

/* A line a call, indented by depth: "name START-END flags". */
static inline void assert_tree(const struct call_tree *tree, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < tree->calls.n; i++)
		print_call(out, &tree->calls.v[i]);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	assert_well_formed(tree);
	assert_unwinds_well_formed(tree);
}

#endif
