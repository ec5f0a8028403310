/* SPDX-License-Identifier: MIT */
/* The parts of an iteration's time, and the kinds of causes for a slow one. */
#ifndef MTBPF_VIEW_ACCOUNT_H
#define MTBPF_VIEW_ACCOUNT_H

/* Parts of an iteration's time: each nanosecond belongs to one of them. */
enum account_part {
	ACCOUNT_CPU,		 /* it ran, in code that is known */
	ACCOUNT_INTERRUPTS,	 /* it had a CPU, but that ran interrupts and softirqs */
	ACCOUNT_RECLAIM_CPU,	 /* it freed memory before it got some, on the CPU, ... */
	ACCOUNT_RECLAIM_BLOCKED, /* ... or blocked in that */
	ACCOUNT_BLOCKED,	 /* it waited for something */
	ACCOUNT_RUNNABLE,	 /* woken, waiting for a CPU */
	ACCOUNT_PREEMPTED,	 /* it could run on, but its CPU was taken */
	ACCOUNT_THROTTLED,	 /* it could run, but its cgroup's quota was used up */
	ACCOUNT_STOLEN,		 /* it had a CPU, but the hypervisor did not run it */
	ACCOUNT_SYSCALL, /* in the kernel, running or waiting: a trace of user code cannot tell */
	ACCOUNT_UNKNOWN, /* not known: gaps, and time for which no stack was taken */
	ACCOUNT_PARTS,
};

/* "on CPU", as the account's line has it; and "on_cpu_ns", as -json has it. */
const char *account_part__name(enum account_part part);
const char *account_part__key(enum account_part part);
/* 'C', in the timelines of summaries: one of its own for each part. */
char account_part__letter(enum account_part part);

enum cause_kind {
	CAUSE_CPU,	  /* code of a function, and of what it calls */
	CAUSE_KERNEL,	  /* the same: most of it is the kernel's code */
	CAUSE_BLOCKED,	  /* it waited for something */
	CAUSE_RECLAIM,	  /* it freed memory before it got some */
	CAUSE_INTERRUPTS, /* its CPU ran interrupts and softirqs */
	CAUSE_WAITING,	  /* ready to run, without a CPU */
	CAUSE_THROTTLED,
	CAUSE_STOLEN,
	CAUSE_TRACED,  /* in a trace of every call: a function's own code */
	CAUSE_SYSCALL, /* the same: a system call, running or waiting */
	CAUSE_UNKNOWN,
	CAUSE_KINDS,
};

/* "on_cpu", as -json and the metrics have it; "on the CPU", as people read it. */
const char *cause_kind__key(enum cause_kind kind);
const char *cause_kind__name(enum cause_kind kind);

#endif
