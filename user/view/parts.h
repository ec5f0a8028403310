/* SPDX-License-Identifier: MIT */
/* What the time of an iteration can be, and what it can be slow for. */
#ifndef MTBPF_VIEW_PARTS_H
#define MTBPF_VIEW_PARTS_H

/* What the time of an iteration can be: each nanosecond of it is one of these. */
enum part {
	PART_CPU,	      /* it ran, in code that is known */
	PART_INTERRUPTS,      /* it had a CPU, but that ran interrupts and softirqs */
	PART_RECLAIM_CPU,     /* it freed memory before it got some, on the CPU, ... */
	PART_RECLAIM_BLOCKED, /* ... or blocked in that */
	PART_BLOCKED,	      /* it waited for something */
	PART_RUNNABLE,	      /* woken, waiting for a CPU */
	PART_PREEMPTED,	      /* it could run on, but its CPU was taken */
	PART_THROTTLED,	      /* it could run, but its cgroup's quota was used up */
	PART_STOLEN,	      /* it had a CPU, but the hypervisor did not run that */
	PART_SYSCALL, /* in the kernel, running or waiting: a trace of user code cannot tell */
	PART_UNKNOWN, /* nothing tells what it did: gaps, and what no stack was taken of */
	PARTS,
};

/* "on CPU", as the account's line has it; and "on_cpu_ns", as -json has it. */
const char *part__name(enum part part);
const char *part__key(enum part part);
/* 'C', in the timelines of summaries: one of its own for each part. */
char part__letter(enum part part);

enum cause_kind {
	CAUSE_CPU,	  /* code of a function, and of what it calls */
	CAUSE_KERNEL,	  /* the same: most of it is the kernel's code */
	CAUSE_BLOCKED,	  /* it waited for something */
	CAUSE_RECLAIM,	  /* it freed memory before it got some */
	CAUSE_INTERRUPTS, /* its CPU ran interrupts and softirqs */
	CAUSE_WAITING,	  /* ready to run, without a CPU */
	CAUSE_THROTTLED,
	CAUSE_STOLEN,
	CAUSE_TRACED,  /* of a trace of every call: a function's own code */
	CAUSE_SYSCALL, /* the same: a system call, running or waiting */
	CAUSE_UNKNOWN,
	CAUSE_KINDS,
};

/* "on_cpu", as -json and the metrics have it; "on the CPU", as people read it. */
const char *cause_kind__key(enum cause_kind kind);
const char *cause_kind__name(enum cause_kind kind);

#endif
