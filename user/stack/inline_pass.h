/* SPDX-License-Identifier: MIT */
/* The slices that inline_pass__run() (tree_passes.h) puts into trees, found in a part of a tree. */
#ifndef MTBPF_STACK_INLINE_PASS_H
#define MTBPF_STACK_INLINE_PASS_H

#include "stack/call_tree.h"

/* A slice that is to be put in. */
struct inline_slice {
	struct call call;
	uint32_t before; /* the call, as they stood, that it is put in front of */
	uint32_t outer;	 /* the slice that it lies in; nothing where it lies in none */
};

/* A call that the walk is in. */
struct inline_level {
	uint32_t index;		    /* its new one */
	uint32_t depth;		    /* its new one */
	uint32_t inner;		    /* the innermost slice in it that is open */
	const struct inlined *open; /* what that is of; NULL: there is none */
	uint64_t last_ns;	    /* when its last callee ended */
};

/* All zeroes at first; its memory is used again. */
struct inline_pass {
	VEC(struct inline_slice) slices; /* in the order of their places */
	VEC(struct inline_level) path;
	struct call_tree *tree;
	uint32_t above; /* what is added to a call's depth for its level's number */
	uint32_t at;	/* the call that the walk has reached */
	bool failed;	/* out of memory */
};

/*
 * Finds the slices of a part of a tree: the first call, and those of its depth, are callees of one
 * that is not in it. The calls get the depths that they will have, counted from there. 0 or
 * -ENOMEM.
 */
int inline_pass__find(struct inline_pass *pass, struct call_tree *part);
void inline_pass__fini(struct inline_pass *pass);

#endif
