/* SPDX-License-Identifier: MIT */
/*
 * Slices of one track as they lie in a file, back in the order of their times: what was written
 * while a recording was decoded stands before its callers.
 */
#ifndef MTBPF_TRACE_READ_FXT_ORDER_H
#define MTBPF_TRACE_READ_FXT_ORDER_H

#include <stdint.h>

#include "stack/call_tree.h"
#include "util/vec.h"

/* Where its begin and its end stand among all those of the track. */
struct fxt_place {
	uint32_t begin, end;
};

typedef VEC(struct fxt_place) fxt_places;

/*
 * `places` are the calls', which have their times, and stand as their begins do in the file. They
 * get their order, parents and depths. 0 or -ENOMEM.
 */
int fxt_order__restore(struct call_tree *tree, const fxt_places *places);

#endif
