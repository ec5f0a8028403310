// SPDX-License-Identifier: MIT
/*
 * libFuzzer: text of perf script to trees. Whatever it says: calls lie within their callers,
 * siblings beside each other, and every name can be read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/perf_text.h"
#include "stack/stack.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static void check_call(const struct call_tree *tree, size_t index)
{
	const struct call *call = &tree->calls.v[index], *parent;

	CHECK(call->start_ns <= call->end_ns);
	CHECK(strlen(call__name(call)) > 0);
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
static void check_tree(const struct call_tree *tree)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_threads *threads = perf_threads__new(NULL, NULL);
	struct perf_text_totals totals = {0};
	struct call_tree tree;

	CHECK(threads);
	CHECK(!perf_text__take(threads, (const char *)data, size, &totals));
	while (perf_threads__next_tree(threads, &tree) > 0) {
		check_tree(&tree);
		call_tree__fini(&tree);
	}
	perf_threads__free(threads);
	return 0;
}
