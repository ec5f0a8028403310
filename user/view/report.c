// SPDX-License-Identifier: MIT
#include "view/report.h"

#include <errno.h>
#include <stdlib.h>

#include "view/report_internal.h"

static bool has_entry(const struct call_tree *tree, const struct hit_mark *hit)
{
	for (size_t i = 0; i < tree->calls.n; i++)
		if (report__is_entry(&tree->calls.v[i], hit))
			return true;
	return false;
}

/* A coroutine's that another thread had run before. */
static const struct call_tree *find_moved(const struct report_input *input)
{
	for (size_t i = 0; i < input->n_trees; i++) {
		const struct call_tree *tree = &input->trees[i];

		if (tree->strand && tree->pid == (pid_t)input->hit->pid &&
		    has_entry(tree, input->hit))
			return tree;
	}
	return NULL;
}

/* Of the trees of the thread that triggered, the stack that the function is called on. */
static const struct call_tree *find_tree(const struct report_input *input)
{
	const struct call_tree *found = NULL, *moved;

	for (size_t i = 0; i < input->n_trees; i++) {
		const struct call_tree *tree = &input->trees[i];

		if (tree->tid != input->hit->tid)
			continue;
		if (has_entry(tree, input->hit))
			return tree;
		if (!found)
			found = tree;
	}
	moved = find_moved(input);
	return moved ? moved : found;
}

static int fill(struct report *r, const struct report_input *input)
{
	int err;

	if (!r->tree || !input->hit->function)
		return -ENODATA;
	r->hit = *input->hit;
	r->sampled = input->sampled;
	r->is_of_several = input->is_of_several;
	r->ring_bytes = input->ring_bytes;
	err = report__find_periods(r, input->hit);
	if (!err && !r->periods.n)
		err = -ENODATA;
	if (err)
		return err;
	return report__fill_rows(r);
}

struct report *report__new(const struct report_input *input)
{
	struct report *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (r) {
		r->tree = find_tree(input);
		err = fill(r, input);
	}
	if (!err)
		return r;
	report__free(r);
	errno = -err;
	return NULL;
}

void report__free(struct report *r)
{
	if (!r)
		return;
	VEC_FINI(&r->periods);
	VEC_FINI(&r->rows);
	VEC_FINI(&r->paths);
	VEC_FINI(&r->path_at);
	free(r->slots);
	free(r);
}
