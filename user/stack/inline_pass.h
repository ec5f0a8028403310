/* SPDX-License-Identifier: MIT */
/* Slices for functions that the compiler put into others, in a finished tree. */
#ifndef MTBPF_STACK_INLINE_PASS_H
#define MTBPF_STACK_INLINE_PASS_H

#include "stack/call_tree.h"

/*
 * A call that was made in inlined code gets that code's function, or functions, between it and its
 * caller. Neighbours that share them lie in one slice: where it began and ended is known only to
 * lie between two calls, so that it spans the calls that are in it, and has both CALL_INFERRED
 * flags. Wants tree->sites. 0 or -ENOMEM.
 */
int inline_pass__run(struct call_tree *tree);

#endif
