/* SPDX-License-Identifier: MIT */
/*
 * Passes over finished trees, of all threads of a recording, in this order: each may be left out.
 * 0 or -ENOMEM.
 */
#ifndef MTBPF_STACK_TREE_PASSES_H
#define MTBPF_STACK_TREE_PASSES_H

#include "stack/call_tree.h"

/*
 * Coroutines that one thread has left, and another one continues: mostly goroutines. If a thread
 * continued a stack that another one had left, at that address and with those callers, the calls
 * are moved there: the thread's own tree then lacks them, and may be empty. If the other thread
 * seems to have continued that stack itself, the calls stay and get copies of its callers. Several
 * matches must have the same callers; the one that was left last is taken.
 */
int migration_pass__run(struct call_tree *trees, size_t n);

/*
 * Slices for functions that the compiler inlined. A call that was made in inlined code gets that
 * code's function, or functions, between it and its caller. Neighbours that share them are in one
 * slice. The times when it began and ended are only known to be between two calls, so it spans the
 * calls in it, and has both CALL_INFERRED flags. Needs tree->sites.
 */
int inline_pass__run(struct call_tree *trees, size_t n);

/* The same slices, found in a part of a tree. */

/* A slice that is to be put in. */
struct inline_slice {
	struct call call;
	uint32_t before; /* original index of the call that it is put in front of */
	uint32_t outer;	 /* the slice that contains it; undefined for an outermost one */
};

/* An open call of the walk. */
struct inline_level {
	uint32_t index;		    /* its new index */
	uint32_t depth;		    /* its new depth */
	uint32_t inner;		    /* the innermost slice in it that is open */
	const struct inlined *open; /* the inlined function of that slice; NULL: none */
	uint64_t last_ns;	    /* when its last callee ended */
};

/* Zero-initialise. Its memory is reused. */
struct inline_pass {
	VEC(struct inline_slice) slices; /* in the order of their places */
	VEC(struct inline_level) path;
	struct call_tree *tree;
	uint32_t above; /* path.v[call.depth + above] is the level of a call */
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
