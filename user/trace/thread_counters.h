/* SPDX-License-Identifier: MIT */
/*
 * A thread's page faults, and moves to another CPU, as counters of how many there have been since
 * the trace began; likewise the time that interrupts took, in ns.
 */
#ifndef MTBPF_TRACE_FAULT_WRITER_H
#define MTBPF_TRACE_FAULT_WRITER_H

#include "stack/call_tree.h"

struct trace_writer;

/* Names of the counters, and what their id is. */
#define FAULT_COUNTER	    "page faults"
#define FAULT_COUNTER_MAJOR "major page faults"
#define MOVE_COUNTER	    "moves between CPUs"
#define INTERRUPT_COUNTER   "interrupts (ns)"
#define FAULT_COUNTER_OF    "thread"

/* Behind the tree's calls: a value at each moment at which there were some. */
void thread_counters__write(struct trace_writer *writer, const struct call_tree *tree);

#endif
