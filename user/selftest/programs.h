/* SPDX-License-Identifier: MIT */
/*
 * Programs whose calls are known exactly, for `mtbpf selftest` to trace. They run in a child of
 * the selftest, one after the other, again and again; each of their functions notes itself in
 * memory that parent and child share.
 */
#ifndef MTBPF_SELFTEST_PROGRAMS_H
#define MTBPF_SELFTEST_PROGRAMS_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum program {
	PROGRAM_BUSY, /* a loop of calls; first, since it fills rings */
	PROGRAM_CALLS,
	PROGRAM_TAIL_CALLS,
	PROGRAM_RECURSION,
	PROGRAM_EXCEPTIONS,
	PROGRAM_UNWINDING,
	PROGRAM_LONGJMP,
	PROGRAM_SIGNALS,
	PROGRAM_THREADS,
	PROGRAM_FORK,
	PROGRAM_LIBRARY,
	PROGRAM_JIT,
	PROGRAM_SYSCALLS,
	PROGRAM_FAULTS,
	PROGRAM_STACKS,
	PROGRAM_ANY_THREAD, /* another thread than the first one hits the probe */
	PROGRAM_TIME,	    /* for samples: functions that take long */
	PROGRAMS,
};

/* A function of a program that notes itself. */
struct program_function {
	const char *name; /* as symbols have it */
	enum program program;
};

extern const struct program_function program_functions[];
extern const unsigned int n_program_functions;

/* One call, as the function itself noted it. */
struct noted_call {
	uint64_t time_ns; /* CLOCK_MONOTONIC, within the call */
	pid_t tid;
	uint16_t function; /* an index of program_functions */
	uint16_t depth;	   /* how many of its callers note themselves, on the same stack */
};

/* Calls noted in one iteration over all programs. More than that are not kept: see `n`. */
#define MAX_NOTED 600

struct iteration {
	atomic_uint n; /* how many were noted, of which calls[] holds the first MAX_NOTED */
	struct noted_call calls[MAX_NOTED];
	unsigned int kernels_syscalls; /* of PROGRAM_SYSCALLS, as the kernel counts; 0: not known */
	uint64_t busy_ns;	       /* how long the loop of PROGRAM_BUSY took */
};

/* How many iterations are kept: the last ones. */
#define KEPT_ITERATIONS 128
/* System calls that PROGRAM_SYSCALLS makes, each directly in a function of its own. */
#define N_SYSCALLS 5
/* Pages that PROGRAM_FAULTS touches first. */
#define N_FAULTS 8

/* How long PROGRAM_BUSY runs at least where it is not recorded. */
#define BUSY_NS 100000
/* How long PROGRAM_TIME sleeps. */
#define SLEEP_NS 15000000

struct program_log {
	atomic_ulong n_iterations; /* those that have ended */
	uint64_t plain_busy_ns;	   /* the shortest time of PROGRAM_BUSY's loop, unrecorded */
	struct iteration iterations[KEPT_ITERATIONS];
};

/*
 * Runs the programs of the mask (1 << enum program) until it is killed; never returns. At the end
 * of iteration k, from 1 on, it calls mtbpf_take_snapshot_with_arg(k): see include/mtbpf.h; with
 * PROGRAM_ANY_THREAD another thread than its first one does.
 * iterations[k % KEPT_ITERATIONS] is of k.
 */
_Noreturn void programs__run(struct program_log *log, unsigned int mask);

#endif
