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

/* Samples are few: all are read, so that what lasts longer than the part is known. */
static int cut(struct decoded *decoded, struct recording *rec, const struct trace_filter *filter)
{
	struct decode_bounds bounds = {decoded->sampled.first_ns, decoded->sampled.last_ns};
	struct decode_totals *totals = &decoded->totals;
	struct filter_part *part = &decoded->part;
	struct filter_totals left = {0};
	int err = trace_filter__resolve(filter, rec, &bounds, part);

	for (size_t i = 0; i < decoded->trees.n && !err; i++) {
		err = filter_part__cut_tree(part, &decoded->trees.v[i]);
		left.branches += decoded->trees.v[i].calls.n;
	}
	if (err)
		return err;
	filter_part__drop_hits(part, rec);
	if (part->decode.from_ns > totals->first_ns)
		totals->first_ns = part->decode.from_ns;
	if (part->decode.to_ns < totals->last_ns)
		totals->last_ns = part->decode.to_ns;
	return filter_part__check(part, &left);
}

int decoded__make_sampled_trees(struct decoded *decoded, struct recording *rec,
				const struct trace_filter *filter)
{
	int err;

	decoded->sampled.meter = decoded->meter;
	decoded->ring_bytes = rec->ring_bytes;
	err = sampled__trees(rec, decoded->images, take_tree, decoded, &decoded->sampled);

	decoded->totals.first_ns = decoded->sampled.first_ns;
	decoded->totals.last_ns = decoded->sampled.last_ns;
	return err || !decoded->is_filtered ? err : cut(decoded, rec, filter);
}
