// SPDX-License-Identifier: MIT
#include "view/report.h"

#include <errno.h>
#include <stdlib.h>

#include "mtbpf_shared.h"
#include "view/report_internal.h"

static bool has_entry(const struct call_tree *tree, const struct hit_mark *hit)
{
	for (size_t i = 0; i < tree->calls.n; i++)
		if (report__is_entry(&tree->calls.v[i], hit))
			return true;
	return false;
}

/*
 * Finds the tree of the stack that the function was called on: the thread's that triggered, or a
 * coroutine's that ran on other threads before. Of several, the one whose call took as long as the
 * hit says.
 */
static const struct call_tree *find_tree(const struct report_input *input)
{
	const struct call_tree *found = NULL, *any = NULL;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < input->n_trees; i++) {
		const struct call_tree *tree = &input->trees[i];
		bool is_its = tree->tid == (input->tid ? input->tid : input->hit->tid);
		uint64_t ns = !is_its;

		if (is_its && !any)
			any = tree;
		/* A request's calls may be in any of them: the first is the thread's own stack. */
		if (input->hit->since_tid)
			continue;
		if (!(is_its || (tree->coroutine && tree->pid == (pid_t)input->hit->pid)) ||
		    !has_entry(tree, input->hit))
			continue;
		if (input->hit->reason == MT_HIT_DURATION)
			report__find_measured(tree, input->hit, &ns);
		if (ns < least)
			found = tree;
		if (ns < least)
			least = ns;
	}
	return found ? found : any;
}

static int fill(struct report *r, const struct report_input *input)
{
	int err;

	if (!r->tree || !input->hit->function)
		return -ENODATA;
	r->trees = input->trees;
	r->n_trees = input->n_trees;
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
