// SPDX-License-Identifier: MIT
/*
 * libFuzzer: text of perf script to trees. Whatever it says: calls lie within their callers,
 * siblings beside each other, and every name can be read.
 */
#include "tree_check.h"

#include "perf/perf_text.h"

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
