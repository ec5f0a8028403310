/* SPDX-License-Identifier: MIT */
/* The programs' notes of their own calls, in memory that they share with the selftest. */
#ifndef MTBPF_SELFTEST_NOTED_H
#define MTBPF_SELFTEST_NOTED_H

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
	PROGRAM_TRAPS,
	PROGRAM_PTWRITE, /* only on CPUs that have the instruction, which raises SIGILL on others */
	PROGRAM_STACKS,
	PROGRAM_ANY_THREAD, /* another thread than the first one hits the probe */
	PROGRAM_TIME,	    /* for samples: functions that take long */
	PROGRAMS,
};

/* The functions that note themselves: their names in the program and their program. */
#define NOTED_FUNCTIONS(F)                                                                         \
	F(calls_main, CALLS)                                                                       \
	F(calls_middle, CALLS)                                                                     \
	F(calls_leaf, CALLS)                                                                       \
	F(tail_main, TAIL_CALLS)                                                                   \
	F(tail_first, TAIL_CALLS)                                                                  \
	F(tail_second, TAIL_CALLS)                                                                 \
	F(tail_third, TAIL_CALLS)                                                                  \
	F(recursion_main, RECURSION)                                                               \
	F(recursion_step, RECURSION)                                                               \
	F(throw_main, EXCEPTIONS)                                                                  \
	F(throw_catcher, EXCEPTIONS)                                                               \
	F(throw_outer, EXCEPTIONS)                                                                 \
	F(throw_inner, EXCEPTIONS)                                                                 \
	F(throw_begin, EXCEPTIONS)                                                                 \
	F(throw_cleanup, EXCEPTIONS)                                                               \
	F(throw_after, EXCEPTIONS)                                                                 \
	F(unwind_main, UNWINDING)                                                                  \
	F(unwind_outer, UNWINDING)                                                                 \
	F(unwind_inner, UNWINDING)                                                                 \
	F(unwind_begin, UNWINDING)                                                                 \
	F(unwind_cleanup, UNWINDING)                                                               \
	F(unwind_after, UNWINDING)                                                                 \
	F(longjmp_main, LONGJMP)                                                                   \
	F(longjmp_outer, LONGJMP)                                                                  \
	F(longjmp_inner, LONGJMP)                                                                  \
	F(longjmp_after, LONGJMP)                                                                  \
	F(signal_main, SIGNALS)                                                                    \
	F(signal_handler, SIGNALS)                                                                 \
	F(signal_leaf, SIGNALS)                                                                    \
	F(thread_main, THREADS)                                                                    \
	F(thread_work, THREADS)                                                                    \
	F(thread_leaf, THREADS)                                                                    \
	F(fork_main, FORK)                                                                         \
	F(fork_after, FORK)                                                                        \
	F(library_main, LIBRARY)                                                                   \
	F(library_compare, LIBRARY)                                                                \
	F(jit_main, JIT)                                                                           \
	F(jit_callee, JIT)                                                                         \
	F(syscall_main, SYSCALLS)                                                                  \
	F(syscall_once, SYSCALLS)                                                                  \
	F(fault_main, FAULTS)                                                                      \
	F(fault_touch, FAULTS)                                                                     \
	F(trap_main, TRAPS)                                                                        \
	F(trap_int3, TRAPS)                                                                        \
	F(trap_invalid, TRAPS)                                                                     \
	F(trap_divide, TRAPS)                                                                      \
	F(trap_segv, TRAPS)                                                                        \
	F(trap_handler, TRAPS)                                                                     \
	F(ptwrite_main, PTWRITE)                                                                   \
	F(ptwrite_value, PTWRITE)                                                                  \
	F(stack_main, STACKS)                                                                      \
	F(stack_other, STACKS)                                                                     \
	F(stack_leaf, STACKS)                                                                      \
	F(any_main, ANY_THREAD)                                                                    \
	F(any_work, ANY_THREAD)                                                                    \
	F(any_leaf, ANY_THREAD)                                                                    \
	F(busy_main, BUSY)                                                                         \
	F(time_main, TIME)                                                                         \
	F(time_long, TIME)                                                                         \
	F(time_short, TIME)                                                                        \
	F(time_sleep, TIME)

enum noted_function {
#define F(name, program) FN_##name,
	NOTED_FUNCTIONS(F)
#undef F
};

/* A function of a program that notes itself. */
struct program_function {
	const char *name; /* as symbols have it */
	enum program program;
};

extern const struct program_function program_functions[];
extern const unsigned int n_program_functions;

/* An event that a function causes after it has noted itself; Intel PT may record it. */
enum noted_event {
	NOTED_NO_EVENT,
	NOTED_EXCEPTION, /* one of its instructions raises an exception */
	NOTED_PTWRITE,	 /* it writes a value with PTWRITE */
};

/* One call, as the function itself noted it. */
struct noted_call {
	uint64_t time_ns; /* CLOCK_MONOTONIC, within the call */
	pid_t tid;
	uint16_t function; /* an index of program_functions */
	uint16_t depth;	   /* number of its callers that note themselves, on the same stack */
	uint8_t event;	   /* enum noted_event */
	uint8_t vector;	   /* of the exception */
	uint64_t value;	   /* what PTWRITE writes; the address of a page fault, otherwise 0 */
};

/* Calls that are kept per iteration of all programs. `n` counts the others, too. */
#define MAX_NOTED 600

struct iteration {
	atomic_uint n; /* number of notes; calls[] keeps the first MAX_NOTED */
	struct noted_call calls[MAX_NOTED];
	unsigned int kernels_syscalls; /* of PROGRAM_SYSCALLS, as the kernel counts; 0: not known */
	uint64_t busy_ns;	       /* how long the loop of PROGRAM_BUSY took */
};

/* The number of iterations that are kept: the last ones. */
#define KEPT_ITERATIONS 128
/* System calls that PROGRAM_SYSCALLS makes, each directly in a function of its own. */
#define N_SYSCALLS 5
/* Pages that PROGRAM_FAULTS touches first, each in a call of its own. */
#define N_FAULTS 8

/* Values that PROGRAM_PTWRITE writes. */
#define N_VALUES 4

/* PROGRAM_BUSY takes at least this long while it is not recorded. */
#define BUSY_NS 100000
/* PROGRAM_TIME sleeps for this long. */
#define SLEEP_NS 15000000

struct program_log {
	atomic_ulong n_iterations; /* iterations that have ended */
	uint64_t plain_busy_ns;	   /* the shortest time of PROGRAM_BUSY's loop, unrecorded */
	struct iteration iterations[KEPT_ITERATIONS];
};

/* Starts an iteration: the following notes belong to it. */
void noted__begin(struct iteration *iteration);
/* Each thread calls this once, before its first note. */
void noted__begin_thread(void);
/* CLOCK_MONOTONIC */
uint64_t noted__now_ns(void);

/* Notes the call of the function that calls this. */
void noted__call(enum noted_function function, unsigned int depth);
/*
 * Like noted__call(), and notes that the function's next instruction raises this exception.
 * address: of a page fault, otherwise 0.
 */
void noted__exception(enum noted_function function, unsigned int depth, uint8_t vector,
		      uint64_t address);
/* Like noted__call(), and notes that the function writes this value with PTWRITE. */
void noted__value(enum noted_function function, unsigned int depth, uint64_t value);

/*
 * Programs whose calls are known exactly, for `mtbpf selftest` to trace. They run in a child of the
 * selftest, in turns, until it is killed.
 */

/*
 * Runs the programs of the mask (1 << enum program) until it is killed; never returns. At the end
 * of iteration k, from 1 on, it calls mtbpf_take_snapshot_with_arg(k): see include/mtbpf.h; with
 * PROGRAM_ANY_THREAD another thread than its first one does.
 * iterations[k % KEPT_ITERATIONS] is of k.
 */
_Noreturn void programs__run(struct program_log *log, unsigned int mask);

#endif
