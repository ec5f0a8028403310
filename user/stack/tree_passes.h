/* SPDX-License-Identifier: MIT */
/*
 * Passes over finished trees, of all threads of a recording, in this order: each may be left out.
 * 0 or -ENOMEM.
 */
#ifndef MTBPF_STACK_TREE_PASSES_H
#define MTBPF_STACK_TREE_PASSES_H

#include "stack/call_tree.h"

/*
 * Coroutines that one thread has left, and another one goes on with: goroutines mostly. Where what
 * a thread went on with had been left by another one, at that address, with those callers, it is
 * put behind that: its own tree then lacks it, and may be empty. Where it cannot be told which of
 * several it was, but they all have the same callers below, it gets these.
 */
int migration_pass__run(struct call_tree *trees, size_t n);

/*
 * Slices for functions that the compiler put into others. A call that was made in inlined code gets
 * that code's function, or functions, between it and its caller. Neighbours that share them lie in
 * one slice: where it began and ended is known only to lie between two calls, so that it spans the
 * calls that are in it, and has both CALL_INFERRED flags. Wants tree->sites.
 */
int inline_pass__run(struct call_tree *trees, size_t n);

#endif
