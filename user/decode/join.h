/* SPDX-License-Identifier: MIT */
/* Regions, one behind another, to one thread's branches: what they could not know of each other. */
#ifndef MTBPF_DECODE_JOIN_H
#define MTBPF_DECODE_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/speed.h"
#include "decode/request.h"

struct joiner {
	const struct decode_request *request;
	struct decode_totals *totals;
	struct branch *out; /* COPIED_MAX of them; the first n_out wait to be handed on */
	size_t n_out;
	size_t next_map;
	uint64_t time_ns;	/* of the last branch */
	uint64_t base, base_ns; /* of the 2^time_shift ticks around it; base_ns: when they begin */
	uint32_t n_insns, n_branches; /* of what was not handed on; the next branch's */
	bool started;		      /* a branch has been handed on */
	bool tracing;		      /* between a BEGIN and its END */
	bool in_gap;		      /* no BEGIN since the last GAP */
	uint8_t gap_reason;
	uint64_t gap_ns;
	struct speed speed;  /* the stretch that is not over */
	uint64_t stopped_ns; /* not tracing: since when */
	uint64_t async_ip;   /* where the last END_ASYNC left; 0 after anything else */
};

/* 0 or -ENOMEM; joiner__fini() in any case. */
int joiner__init(struct joiner *joiner, const struct decode_request *request);
void joiner__fini(struct joiner *joiner);
/* The next entries are from another snapshot. */
void joiner__begin(struct joiner *joiner);
/*
 * An raw_branches_fn (regions.h), with the joiner as ctx: nothing waits to be handed on behind it.
 * 0, -ENOMEM, or what the request's `take` returned.
 */
int joiner__take(void *joiner, struct branch *raw, size_t n);

#endif
