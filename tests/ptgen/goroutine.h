/* SPDX-License-Identifier: MIT */
/* Which goroutine a thread of a Go program runs: its stack may be moved to elsewhere. */
#ifndef MTBPF_TESTS_PTGEN_GOROUTINE_H
#define MTBPF_TESTS_PTGEN_GOROUTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "signals.h"

struct goroutine {
	uint64_t g;	   /* its number; a scheduler's address; 0: there is none yet */
	uint64_t low, top; /* of its stack */
	uint64_t saved_sp; /* where it was left, or, of a scheduler's, where it begins each time */
};

/* The stack pointer is on another stack: a handler's, or the scheduler's for a call of the vDSO. */
static inline bool goroutine__is_away(const struct goroutine *goroutine, uint64_t sp)
{
	return goroutine->g && (sp < goroutine->low || sp > goroutine->top);
}

struct goroutine goroutine__find(const struct cpu_regs *regs);

#endif
