/* SPDX-License-Identifier: MIT */
/* The parameters of a decoding: its input, options, and the receiver of its branches. */
#ifndef MTBPF_DECODE_REQUEST_H
#define MTBPF_DECODE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recording/recording.h"
#include "decode/branch.h"
#include "decode/images.h"

struct meter;
struct switches;

#define GAP_REASONS (GAP_FILTERED + 1)

struct decode_totals {
	uint64_t insns;
	uint64_t branches;	      /* branches handed to the receiver */
	uint64_t gaps[GAP_REASONS];   /* by enum gap_reason */
	uint64_t gap_ns[GAP_REASONS]; /* from the last known time before each gap to the first one
					 after it */
	uint64_t first_ns, last_ns;   /* 0 if nothing was decoded */
	uint64_t unknown_insns;	      /* left out, since no switch tells their thread */
};

struct decode_request {
	const struct recording *rec;
	const struct rec_aux *aux;
	/* For a CPU's ring, in which threads alternate; otherwise NULL. */
	const struct switches *switches;
	struct images *images;
	struct code_map *map;
	branches_fn take;
	void *ctx;
	struct decode_totals *totals;
	struct meter *meter; /* of bytes of PT, or NULL */
	/* False: branches that stay within a function are left out. */
	bool all_branches;
	bool wants_source; /* the decoding threads call images__prepare_source(), too */
	/* Neither changes the result. 0: the fastest value. */
	unsigned int jobs;  /* number of decoding threads */
	size_t region_size; /* the least number of PT bytes per region, except the last */
};

#endif
