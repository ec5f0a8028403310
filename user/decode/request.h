/* SPDX-License-Identifier: MIT */
/* What is to be decoded, how, and who takes it. */
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
	uint64_t branches;	      /* handed on */
	uint64_t gaps[GAP_REASONS];   /* by enum gap_reason */
	uint64_t gap_ns[GAP_REASONS]; /* from what was known last to where it went on */
	uint64_t first_ns, last_ns;   /* 0 where nothing was decoded */
	uint64_t unknown_insns;	      /* of threads that no switch names: left out */
};

struct decode_request {
	const struct recording *rec;
	const struct rec_aux *aux;
	/* Of a CPU's ring, where threads come and go; else NULL. */
	const struct switches *switches;
	struct images *images;
	struct code_map *map;
	branches_fn take;
	void *ctx;
	struct decode_totals *totals;
	struct meter *meter; /* of bytes of PT, or NULL */
	/* Else direct branches within a function are left out, and indirect jumps. */
	bool all_branches;
	bool wants_source; /* images__prepare_source() as well, where there is a thread for it */
	/* What is handed on is the same whatever these are; 0: what is fastest. */
	unsigned int jobs;  /* threads to decode with */
	size_t region_size; /* bytes of PT that are decoded by one, at least */
};

#endif
