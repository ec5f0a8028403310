/* SPDX-License-Identifier: MIT */
/* What is true of every call tree, whatever it was made of. */
#ifndef MTBPF_TESTS_FUZZ_TREE_CHECK_H
#define MTBPF_TESTS_FUZZ_TREE_CHECK_H

#include "fuzz.h"

#include "stack/stack.h"

static inline void check_call(const struct call_tree *tree, size_t index)
{
	const struct call *call = &tree->calls.v[index], *parent;

	CHECK(call->start_ns <= call->end_ns);
	CHECK(strlen(call__name(call)) > 0 || call->function);
	CHECK(!call->function || call->function->module);
	if (call->parent == CALL_NO_PARENT) {
		CHECK(call->depth == 0);
		return;
	}
	CHECK(call->parent < index);
	parent = &tree->calls.v[call->parent];
	CHECK(call->depth == parent->depth + 1);
	CHECK(call->start_ns >= parent->start_ns && call->end_ns <= parent->end_ns);
}

/* Pre-order: what follows a call of the same parent begins behind it. */
static inline void check_tree(const struct call_tree *tree)
{
	uint64_t *busy_until = calloc(tree->calls.n + 1, sizeof(*busy_until));

	CHECK(busy_until);
	for (size_t i = 0; i < tree->calls.n; i++) {
		const struct call *call = &tree->calls.v[i];
		uint64_t *until =
			&busy_until[call->parent == CALL_NO_PARENT ? 0 : call->parent + 1];

		check_call(tree, i);
		CHECK(call->start_ns >= *until);
		*until = call->end_ns;
	}
	free(busy_until);
}

#endif
