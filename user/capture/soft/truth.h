/* SPDX-License-Identifier: MIT */
/*
 * The real stack of a stepped thread, from its stack pointer: what tests compare decoded stacks
 * with. A frame lives as long as its return address lies at or above the stack pointer.
 */
#ifndef MTBPF_CAPTURE_SOFT_TRUTH_H
#define MTBPF_CAPTURE_SOFT_TRUTH_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "util/vec.h"

struct truth {
	FILE *log; /* not owned; NULL: nothing is kept */
	pid_t tid;
	long base;	     /* depth of the frame below all known ones; falls on late returns */
	VEC(uint64_t) slots; /* where each known frame's return address lies, outermost first */
};

void truth__init(struct truth *truth, FILE *log, pid_t tid);
void truth__fini(struct truth *truth);

/* A call to `to`; sp is the stack pointer after it. Logs "TID TIME call TO DEPTH". */
void truth__call(struct truth *truth, uint64_t time_ns, uint64_t to, uint64_t sp);
/* A return to `to`; sp is the stack pointer after it. Logs "TID TIME return TO DEPTH". */
void truth__return(struct truth *truth, uint64_t time_ns, uint64_t to, uint64_t sp);
/* The kernel entered a signal handler, with sp at its return address. Not logged. */
void truth__signal(struct truth *truth, uint64_t sp);
/* execve: nothing of the old stack is left. */
void truth__reset(struct truth *truth);

#endif
