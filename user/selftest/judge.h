/* SPDX-License-Identifier: MIT */
/* Compares a decoded trace of the programs with the programs' own notes. */
#ifndef MTBPF_SELFTEST_JUDGE_H
#define MTBPF_SELFTEST_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/pipeline.h"
#include "selftest/noted.h"

/* One program's calls in one iteration, in its notes and in the trace. */
struct judged_calls {
	unsigned int noted;   /* calls that the program noted */
	unsigned int right;   /* noted calls that the trace has, in this order and at this depth */
	unsigned int unnoted; /* calls in the trace that the program did not make */
	/*
	 * Each note's time is within the slice of its call if the same shift, from least_shift_ns
	 * to most_shift_ns, is added to all notes. If least_shift_ns is more than most_shift_ns, no
	 * shift is right for all of them.
	 */
	int64_t least_shift_ns, most_shift_ns;
	/*
	 * Slices of system calls and of time that is not traced, within the calls counted in
	 * `right`: the program makes a known number of both.
	 */
	unsigned int syscalls, untraced;
	unsigned int in_kernel; /* calls of the kernel's getppid(), if the kernel is traced */
	/*
	 * Event Trace and PTWRITE: exceptions and values that the program noted; how many of these
	 * the trace has, with vector and address, in the function that noted them; how many others
	 * the trace has in such functions.
	 */
	unsigned int noted_events, events, unnoted_events;
};

/*
 * Returns the hit that ended the trace, and sets *k to the iteration that the hit ended; NULL: no
 * hit of the trace has an iteration's number as its argument.
 */
const struct hit_mark *judge__find_hit(const struct decoded *decoded, uint64_t *k);

/* Sums up several programs, from JUDGED_NONE on. */
#define JUDGED_NONE ((struct judged_calls){.least_shift_ns = INT64_MIN, .most_shift_ns = INT64_MAX})
void judged_calls__add(struct judged_calls *sum, const struct judged_calls *judged);

/* Only calls that begin before end_ns count. 0 or -ENOMEM. */
int judge__calls(const struct decoded *decoded, const struct iteration *iteration,
		 enum program program, uint64_t end_ns, struct judged_calls *judged);

/* The time of one function in a trace by samples; the function notes its begin and its end. */
struct judged_time {
	uint64_t true_ns;    /* by the function's own notes */
	uint64_t slices_ns;  /* its slices in that time */
	uint64_t blocked_ns; /* blocked slices within them */
	uint64_t waited_ns;  /* other slices off the CPU within them: ready to run, or preempted */
	bool has_caller;     /* each of its slices has the program's main function as a caller */
};

/* `function` is a name as in program_functions. The trace's times are CLOCK_MONOTONIC. */
void judge__time(const struct decoded *decoded, const struct iteration *iteration,
		 const char *function, struct judged_time *judged);

/* The time of PROGRAM_BUSY's loop in the trace, summed over its iterations. */
uint64_t judge__busy_ns(const struct decoded *decoded);

#endif
