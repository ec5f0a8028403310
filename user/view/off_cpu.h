/* SPDX-License-Identifier: MIT */
/* Sums up what threads waited for, and who woke them or ran in their place. */
#ifndef MTBPF_VIEW_OFF_CPU_H
#define MTBPF_VIEW_OFF_CPU_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stack/call_tree.h"

/*
 * At most this many different waits, and as many different names, are summed up; those that come
 * later are ignored.
 */
#define OFF_CPU_MAX 8
/*
 * At most OFF_CPU_SHOWN waits or names are printed, each with at least 1/OFF_CPU_SHARE of the time
 * of the largest one.
 */
#define OFF_CPU_SHOWN 3
#define OFF_CPU_SHARE 3

/* The time of one wait, or by one name. */
struct off_cpu_sum {
	const struct waits_for *wait; /* in off_cpu.waits: the first wait with this text */
	const struct done_by *by;     /* in off_cpu.names: the longest entry with this name */
	uint64_t ns;
};

/* Zero-initialise. */
struct off_cpu {
	struct off_cpu_sum waits[OFF_CPU_MAX], names[OFF_CPU_MAX];
	uint64_t ns; /* total time off the CPU */
	bool woken;  /* true: names are of threads that woke it; false: that ran instead */
};

/*
 * Adds ns of the call's self time, what the call waited for, and the threads that caused the wait,
 * whose times are reduced in the same proportion.
 * Waits with the same text add up, as do threads with the same name.
 */
void off_cpu__add(struct off_cpu *off_cpu, const struct call_tree *tree, const struct call *call,
		  uint64_t ns);
/* The longest wait; NULL if that is less than a third of the time. */
const struct waits_for *off_cpu__wait(const struct off_cpu *off_cpu);
/*
 * A thread or goroutine with the name that caused most of the time; NULL: that is less than a
 * third.
 */
const struct done_by *off_cpu__most(const struct off_cpu *off_cpu);
/*
 * Prints ": read of pipe:[812] (fd 5)", or ": chan receive and select": the longest wait and those
 * that took nearly as long. Prints nothing if off_cpu__wait() is NULL, or has the name of the
 * function `inside`.
 */
void off_cpu__print_wait(FILE *out, const struct off_cpu *off_cpu, const struct function *inside);
/*
 * Prints ", by hog (12), cc1 (13)": the largest and those with nearly as much. Prints nothing if no
 * name is known, or none has a third of the time.
 */
void off_cpu__print(FILE *out, const struct off_cpu *off_cpu);

#endif
