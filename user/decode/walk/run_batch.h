/* SPDX-License-Identifier: MIT */
/*
 * Packets that tell of branches, in runs, as they are looked for in the memo: read ahead of what is
 * known of the code, so that the CPU need not wait for the one to go on with the other.
 */
#ifndef MTBPF_DECODE_WALK_RUN_BATCH_H
#define MTBPF_DECODE_WALK_RUN_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/memo.h"
#include "decode/packet.h"
#include "decode/pt_time.h"

/* Enough to have the memo's entries fetched before they are needed. */
#define BATCH_RUNS 16

/* A place in the stream, and what is known there from the packets before it. */
struct run_point {
	const uint8_t *at;
	uint64_t last_ip, context;
	struct pt_time time;
};

struct run_batch {
	unsigned int n;
	struct memo_run runs[BATCH_RUNS];
	struct run_point end; /* behind them */
};

/*
 * The runs that lie one behind the other from a place on. None where something else comes first, or
 * the bytes up to `to` are too few to be read without looking where they end.
 */
void run_batch__read(struct run_batch *batch, const struct run_point *from, bool skd007,
		     const struct memo_entry *entries, const uint8_t *to);

/* As it is where the run begins: `time` is of an earlier one of the batch. */
void pt_time__go_to(struct pt_time *time, uint64_t cycles, uint64_t tsc);

#endif
