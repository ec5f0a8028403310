/* SPDX-License-Identifier: MIT */
/*
 * Calls of goroutines that probes measured from start to end (-also), with one track per goroutine.
 * During a call a goroutine may change threads, and its first thread runs other goroutines
 * meanwhile, so that these calls do not fit into any thread's tree.
 */
#ifndef MTBPF_SAMPLED_GOROUTINES_H
#define MTBPF_SAMPLED_GOROUTINES_H

#include <stddef.h>
#include <stdint.h>

#include "capture/recording/recording.h"
#include "decode/images.h"
#include "stack/call_tree.h"

/* Copies of the threads' trees; the sampled_taker that took the trees owns their calls. */
struct thread_trees {
	struct call_tree *v;
	size_t n, cap;
};

/*
 * Like sampled__trees(), for goroutines; moves *first_ns back if needed. A call of
 * runtime.gopark() becomes time off the CPU. The rest of a call is filled with what the stacks of
 * the threads show of it.
 */
int goroutines__trees(const struct recording *rec, struct images *images,
		      const struct thread_trees *threads,
		      int (*take)(void *ctx, struct call_tree *tree), void *ctx,
		      uint64_t *first_ns);

#endif
