/* SPDX-License-Identifier: MIT */
/* Between the oracle's files: its state, and how it becomes branches. */
#ifndef MTBPF_TESTS_ORACLE_INTERNAL_H
#define MTBPF_TESTS_ORACLE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/decode.h"
#include "util/insn.h"

struct pt_block_decoder;

struct decoder {
	struct pt_block_decoder *blk;
	const struct recording *rec;
	const struct rec_aux *aux;
	struct images *images;
	struct code_map *map;
	size_t next_map;
	branches_fn take;
	void *ctx;
	struct decode_totals *totals;
	uint64_t time_ns;
	uint32_t n_insns;  /* since the last branch handed on */
	uint32_t n_direct; /* direct branches since the last that asked for a packet */
	bool started;	   /* a branch has been handed on */
	bool tracing;	   /* between a BEGIN and its END */
	bool in_gap;	   /* a gap has been handed on, and no BEGIN since */
	uint64_t async_ip; /* where the last END_ASYNC left; 0 after anything else */
	/* The last block's last instruction, a branch whose target the next block tells. */
	bool pending;
	uint64_t last_ip;
	struct insn last_insn;
};

/* These hand on branches at d->time_ns, and return what the taker did. */

int decoder__hand_on(struct decoder *d, struct branch *branch);
/* Tracing begins at ip. */
int decoder__begin(struct decoder *d, uint64_t ip);
/*
 * Tracing goes on at ip. Under a probe the kernel does the instruction that was left: where that is
 * a branch to ip, it happened, though no packet says so.
 */
int decoder__go_on(struct decoder *d, uint64_t ip);
/* The pending branch, if there is one, went to `to`. */
int decoder__resolve(struct decoder *d, uint64_t to);
/* Left user code by the pending instruction: a syscall, under a user-only filter. */
int decoder__end_sync(struct decoder *d);
/* The thread came to ip, where decoder__end_async() says that it left. */
int decoder__leave_at(struct decoder *d, uint64_t ip);
int decoder__end_async(struct decoder *d, uint64_t at);
/* The kernel is traced: an interrupt or exception before the instruction at `from`. */
int decoder__enter(struct decoder *d, uint64_t from, uint64_t to);
/* One a break, however many errors follow before tracing goes on. */
int decoder__gap(struct decoder *d, enum gap_reason reason, uint64_t ip);

/* The instruction at ip; len 0 where there is none. */
struct insn decoder__fetch(struct decoder *d, uint64_t ip);

#endif
