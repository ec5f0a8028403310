// SPDX-License-Identifier: MIT
/* A recording of samples to call trees: joins sampled and the rest. */
#include "pipeline/make_trees.h"

#include <errno.h>

#include "stack/stack.h"

static int take_tree(void *ctx, struct call_tree *tree)
{
	struct decoded *decoded = ctx;
	struct call_tree *out = VEC_PUSH(&decoded->trees);

	if (!out) {
		call_tree__fini(tree);
		return -ENOMEM;
	}
	*out = *tree;
	return 0;
}

int decoded__make_sampled_trees(struct decoded *decoded, const struct recording *rec)
{
	int err;

	decoded->sampled.meter = decoded->meter;
	decoded->ring_bytes = rec->ring_bytes;
	err = sampled__trees(rec, decoded->images, take_tree, decoded, &decoded->sampled);

	decoded->totals.first_ns = decoded->sampled.first_ns;
	decoded->totals.last_ns = decoded->sampled.last_ns;
	return err;
}
