/* SPDX-License-Identifier: MIT */
/*
 * Joins consecutive regions to one thread's branches, and completes what each could not know about
 * the one before.
 */
#ifndef MTBPF_DECODE_JOIN_H
#define MTBPF_DECODE_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/speed.h"
#include "decode/request.h"

struct joiner {
	const struct decode_request *request;
	struct decode_totals *totals;
	struct branch *out; /* COPIED_MAX entries; the first n_out are to be handed on */
	size_t n_out;
	size_t next_map;
	uint64_t time_ns;	      /* of the last branch */
	uint64_t base, base_ns;	      /* the first of 2^time_shift ticks around it, and its time */
	uint32_t n_insns, n_branches; /* counts of entries not handed on, for the next branch */
	bool started;		      /* a branch has been handed on */
	bool tracing;		      /* between a BEGIN and its END */
	bool in_gap;		      /* no BEGIN since the last GAP */
	uint8_t gap_reason;
	uint64_t gap_ns;
	struct speed speed;  /* the current stretch */
	uint64_t stopped_ns; /* if not tracing: since when */
	uint64_t async_ip;   /* where the last END_ASYNC left; 0 after anything else */
};

/* 0 or -ENOMEM; joiner__fini() in any case. */
int joiner__init(struct joiner *joiner, const struct decode_request *request);
void joiner__fini(struct joiner *joiner);
/* The next entries are from another snapshot. */
void joiner__begin(struct joiner *joiner);
/*
 * A raw_branches_fn (regions.h) with the joiner as ctx. It hands on everything before it returns.
 * 0, -ENOMEM, or what the request's `take` returned.
 */
int joiner__take(void *joiner, struct branch *raw, size_t n);

#endif
