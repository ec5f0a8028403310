// SPDX-License-Identifier: MIT
/* libFuzzer: a trace file, packed or not, to a report. Whatever it names is fit for a terminal. */
#include "tree_check.h"

#include "trace/fxt_trees.h"
#include "view/folded.h"
#include "view/report.h"

static void print_report(FILE *out, const struct fxt_trees *trees, const struct hit_mark *hit)
{
	struct report *report = report__new(&(struct report_input){.trees = trees->trees.v,
								   .n_trees = trees->trees.n,
								   .hit = hit,
								   .sampled = trees->is_sampled});

	if (!report)
		return;
	report__print(out, report, 10);
	CHECK(!report__print_json(out, report, NULL));
	CHECK(!report__print_difference(out, report, report, 10));
	report__free(report);
}

static void check_output(const struct fxt_trees *trees)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	for (size_t i = 0; i < trees->hits.n && i < 4; i++)
		if (trees->hits.v[i].function)
			print_report(out, trees, &trees->hits.v[i]);
	CHECK(!folded__print(out, trees->trees.v, trees->trees.n));
	CHECK(!fclose(out));
	fuzz__check_lines(text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz__file(data, size), err;
	struct fxt_trees trees;

	err = fxt_trees__read(&trees, fd, NULL);
	for (size_t i = 0; i < trees.trees.n; i++)
		check_tree(&trees.trees.v[i]);
	if (!err)
		check_output(&trees);
	fxt_trees__fini(&trees);
	close(fd);
	return 0;
}
