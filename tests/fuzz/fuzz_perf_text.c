// SPDX-License-Identifier: MIT
/*
 * libFuzzer: text of perf script to trees. Whatever it says: calls lie within their callers,
 * siblings beside each other, and every name can be read.
 */
#include "tree_check.h"

#include "perf/perf_text.h"
#include "sampled/sampled.h"

static int take_tree(void *ctx, struct call_tree *tree)
{
	(void)ctx;
	check_tree(tree);
	call_tree__fini(tree);
	return 0;
}

static void check_samples(struct perf_samples *samples)
{
	struct sampled_totals totals = {0};
	struct recording rec = {0};
	struct images *images = images__new(&rec);
	struct named_image *code;

	CHECK(images && !perf_samples__finish(samples, &rec, &code));
	images__set_code(images, code);
	CHECK(!sampled__trees(&rec, images, take_tree, NULL, &totals));
	images__free(images);
	recording__fini(&rec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_text text = {.threads = perf_threads__new(NULL, NULL),
				 .samples = perf_samples__new(false)};
	struct call_tree tree;

	CHECK(text.threads && text.samples);
	CHECK(!perf_text__take(&text, (const char *)data, size));
	while (perf_threads__next_tree(text.threads, &tree) > 0) {
		check_tree(&tree);
		call_tree__fini(&tree);
	}
	check_samples(text.samples);
	perf_samples__free(text.samples);
	perf_threads__free(text.threads);
	return 0;
}
