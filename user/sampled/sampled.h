/* SPDX-License-Identifier: MIT */
/*
 * Converts sampled stacks to call trees. user/stack follows each call and return; here consecutive
 * stacks that share a frame make one slice of it, and most slices begin and end somewhere between
 * two samples.
 */
#ifndef MTBPF_SAMPLED_SAMPLED_H
#define MTBPF_SAMPLED_SAMPLED_H

#include <stdint.h>

#include "capture/recording/recording.h"
#include "decode/images.h"
#include "stack/call_tree.h"

struct meter;

struct sampled_totals {
	uint64_t first_ns, last_ns; /* 0: the recording is empty */
	uint64_t samples, switches;
	/*
	 * copies: stacks that were unwound from copies. Of these, some lack their outer callers,
	 * which were not copied: cut_copies, because the copy has the requested size; torn_copies,
	 * because it ends at a page that was not in RAM.
	 */
	uint64_t copies, cut_copies, torn_copies;
	size_t copy_size;    /* of the largest copy, in bytes */
	struct meter *meter; /* the caller's: counts samples that were read; or NULL */
};

/* Takes ownership of the tree, even if it fails. A non-zero result stops and is returned. */
typedef int (*sampled_taker)(void *ctx, struct call_tree *tree);

/*
 * Makes the call tree of each thread, ordered by tid, then of each goroutine with measured calls.
 * All calls have CALL_SAMPLED. Exact times: entry and return of probed functions, as far as the
 * recording has entries for them; long system calls; time off the CPU. All other starts and ends
 * are CALL_INFERRED_START and _END. Returns 0, -ENOMEM, or what `take` returned.
 */
int sampled__trees(const struct recording *rec, struct images *images, sampled_taker take,
		   void *ctx, struct sampled_totals *totals);

#endif
