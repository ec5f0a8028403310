/* SPDX-License-Identifier: MIT */
/* A recording's threads to call trees: joins decode and stack, or sampled. */
#ifndef MTBPF_PIPELINE_MAKE_TREES_H
#define MTBPF_PIPELINE_MAKE_TREES_H

#include "pipeline/pipeline.h"

/*
 * Fills decoded's trees, its totals, and the branches after the hit. 0; -ENOMEM; or -ENODATA after
 * a line and a hint: the filter leaves nothing.
 */
int decoded__make_trees(struct decoded *decoded, const struct recording *rec,
			const struct tree_options *options);

/*
 * Call it when all threads have their trees: puts calls of coroutines that changed threads
 * together, drops empty trees and, unless no_inline, adds inlined functions. 0 or -ENOMEM.
 */
int decoded__settle_trees(struct decoded *decoded, bool no_inline);

/* The same from samples; hits that the filter leaves out are in rec no more. */
int decoded__make_sampled_trees(struct decoded *decoded, struct recording *rec,
				const struct trace_filter *filter);

/* "" where it is not known. */
const char *decoded__thread_name(const struct recording *rec, pid_t tid);

#endif
