/* SPDX-License-Identifier: MIT */
/* Which goroutine a thread of a Go program runs: its stack may be moved to elsewhere. */
#ifndef MTBPF_TESTS_PTGEN_GOROUTINE_H
#define MTBPF_TESTS_PTGEN_GOROUTINE_H

#include <stdint.h>

#include "signals.h"

#define GOROUTINE_SIGNAL 1

struct goroutine {
	uint64_t g; /* its address; 0: there is none yet; GOROUTINE_SIGNAL: on a handler's stack */
	uint64_t top;	   /* of its stack */
	uint64_t saved_sp; /* where it was left, or, of a scheduler's, where it begins each time */
};

struct goroutine goroutine__find(const struct cpu_regs *regs);

#endif
