/* SPDX-License-Identifier: MIT */
/* What a thread's call tree still lacks when all branches have been taken. */
#ifndef MTBPF_TREE_SETTLE_H
#define MTBPF_TREE_SETTLE_H

#include "capture/recording.h"
#include "pipeline.h"
#include "stack/call_tree.h"
#include "target/code_map.h"

/*
 * Times of its own for each event, places in the source for each call, and slices for inlined
 * functions unless they are not wanted. `map` shows the code as it was at the end. 0 or -ENOMEM.
 */
int tree__settle(struct call_tree *tree, struct code_map *map, const struct recording *rec,
		 const struct tree_options *options);

#endif
