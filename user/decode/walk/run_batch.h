/* SPDX-License-Identifier: MIT */
/*
 * Reads runs of packets (memo.h) ahead of the walk, so that the CPU can fetch the memo's entries
 * before they are needed.
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

/* A place in the stream, with the decoder's state there. */
struct run_point {
	const uint8_t *at;
	uint64_t last_ip, context;
	struct pt_time time;
};

struct run_batch {
	unsigned int n;
	struct memo_run runs[BATCH_RUNS];
	struct run_point end; /* after the last run */
};

/*
 * Reads consecutive runs from a place on. It reads none if another packet comes first, or if there
 * are too few bytes before `to` to read without checks for the end.
 */
void run_batch__read(struct run_batch *batch, const struct run_point *from, bool skd007,
		     const struct memo_entry *entries, const uint8_t *to);

/* Moves `time` from an earlier run of the batch to the run that begins with these values. */
void pt_time__go_to(struct pt_time *time, uint64_t cycles, uint64_t tsc);

#endif
