/* SPDX-License-Identifier: MIT */
/*
 * A thread's blocks in, as they run, an Intel PT stream and the true stack out. Knows nothing of
 * QEMU.
 */
#ifndef MTBPF_TESTS_PTGEN_WALK_H
#define MTBPF_TESTS_PTGEN_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "block.h"
#include "capture/soft/truth.h"
#include "goroutine.h"
#include "shared.h"
#include "signals.h"

struct walk {
	struct ptgen_shared *shared;
	struct ptgen_thread *out; /* in shared */
	struct pt_stream *stream; /* in out */
	uint8_t *ring;
	uint64_t ring_mask;
	const struct signals *signals;
	FILE *truth_log; /* NULL: none is wanted */
	struct truth truth;
	/* Of Go programs. */
	struct goroutine goroutine, called_by; /* that runs; that called systemstack(), or none */
	uint64_t called_shift;	  /* from the scheduler's stack to below that one's frames */
	uint64_t last_g, last_sp; /* at the last call or return */
	bool is_away;		  /* from its goroutine's stack */
	uint64_t away_shift;	  /* from there to below its frames */
	unsigned int n_signals;	  /* handlers that run */
	uint64_t signal_shift;	  /* from their stack to below what they interrupted */
	uint64_t interrupted_ip, interrupted_sp; /* by the outermost handler, until that is over */
	const struct block *prev; /* runs; NULL: something else than a block came before the next */
	uint64_t instructions;	  /* up to prev, without it */
	uint64_t tsc_zero;	  /* the TSC at 0 instructions, if there were no pauses */
	uint64_t alarm;		  /* the number of instructions at which to look up */
	uint64_t counted;	  /* of them, in shared->recorded */
	uint64_t overflow_at;	  /* bytes written */
	uint64_t lost_until;	  /* instructions */
	bool recording;		  /* false: before the recording's begin, or behind its end */
	bool lost;		  /* between an overflow and its end */
};

/*
 * A new thread's, which records into slot i of shared, whose tid is there already. Slot 0's says
 * when the recording begins.
 */
void walk__init(struct walk *w, struct ptgen_shared *shared, uint32_t i,
		const struct signals *signals, FILE *truth_log);
void walk__fini(struct walk *w);

/*
 * Block b is about to run, and these are the registers. Where that sets out->ended, b must not run:
 * the process is to be ended.
 */
void walk__block(struct walk *w, const struct block *b, const struct cpu_regs *regs);

/* The system call at the end of the block that runs is about to be made. */
void walk__syscall(struct walk *w, int64_t nr);

#endif
