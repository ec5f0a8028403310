/* SPDX-License-Identifier: MIT */
/* Converts a recording's threads to call trees, with decode and stack, or with sampled. */
#ifndef MTBPF_PIPELINE_MAKE_TREES_H
#define MTBPF_PIPELINE_MAKE_TREES_H

#include "capture/recording/recording.h"
#include "pipeline/decoded.h"

/*
 * Fills decoded's trees, its totals, and the branches after the hit. 0; -ENOMEM; or -ENODATA after
 * a line and a hint: the filter leaves nothing.
 */
int decoded__make_trees(struct decoded *decoded, const struct recording *rec,
			const struct tree_options *options);

/*
 * Call this when all threads have their trees: joins calls of coroutines that changed threads,
 * drops empty trees and, unless no_inline, adds inlined functions. 0 or -ENOMEM.
 */
int decoded__settle_trees(struct decoded *decoded, bool no_inline);

/* Like decoded__make_trees(), from samples. Removes from rec the hits that the filter excludes. */
int decoded__make_sampled_trees(struct decoded *decoded, struct recording *rec,
				const struct trace_filter *filter);

/* The thread's name; "" if it is not known. */
const char *decoded__thread_name(const struct recording *rec, pid_t tid);

#endif
