/* SPDX-License-Identifier: MIT */
/* PT bytes and code to branches. The only user of libipt's decoder. */
#ifndef MTBPF_DECODE_DECODE_H
#define MTBPF_DECODE_DECODE_H

#include <stdint.h>

#include "capture/recording.h"
#include "decode/branch.h"
#include "decode/images.h"

#define GAP_REASONS (GAP_BETWEEN + 1)

struct decode_totals {
	uint64_t insns;
	uint64_t branches;	    /* handed on */
	uint64_t gaps[GAP_REASONS]; /* by enum gap_reason */
	uint64_t first_ns, last_ns; /* 0 where nothing was decoded */
};

/*
 * Decodes one thread's PT and hands its branches to fn, in order. `map` starts empty; during each
 * call of fn it shows the code as it was at the branch. Adds to totals.
 * 0; -ENOMEM; -EINVAL where libipt refuses the stream's description (after a line on stderr); or
 * what fn returned. Damage in the stream is no error: it is a BRANCH_GAP.
 */
int decode__thread(const struct recording *rec, const struct rec_aux *aux, struct images *images,
		   struct code_map *map, branch_fn fn, void *ctx, struct decode_totals *totals);

#endif
