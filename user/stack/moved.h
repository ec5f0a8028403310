/* SPDX-License-Identifier: MIT */
/*
 * Coroutines that one thread has left, and another one goes on with: goroutines mostly. Each
 * thread's trees know of its own part only.
 */
#ifndef MTBPF_STACK_MOVED_H
#define MTBPF_STACK_MOVED_H

#include "stack/call_tree.h"

/*
 * Trees of all threads; before there are slices of inlined functions in them. Where what a thread
 * went on with had been left by another one, at that address, with those callers, it is put behind
 * that: its own tree then lacks it, and may be empty. Where it cannot be told which of several it
 * was, but they all have the same callers below, it gets these. 0 or -ENOMEM.
 */
int moved__join(struct call_tree *trees, size_t n);

#endif
