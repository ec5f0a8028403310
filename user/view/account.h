/* SPDX-License-Identifier: MIT */
/* The parts of an iteration's time, and the kinds of causes for a slow one. */
#ifndef MTBPF_VIEW_ACCOUNT_H
#define MTBPF_VIEW_ACCOUNT_H

/* Parts of an iteration's time: each nanosecond belongs to one of them. "It" is the thread. */
enum account_part {
	ACCOUNT_CPU,		 /* it ran, in code that is known */
	ACCOUNT_INTERRUPTS,	 /* it had a CPU, but that ran interrupts and softirqs */
	ACCOUNT_RECLAIM_CPU,	 /* on the CPU, it freed memory so that an allocation could go on */
	ACCOUNT_RECLAIM_BLOCKED, /* it was blocked while it freed memory */
	ACCOUNT_BLOCKED,	 /* it waited for something */
	ACCOUNT_RUNNABLE,	 /* woken, waiting for a CPU */
	ACCOUNT_PREEMPTED,	 /* it could run on, but its CPU was taken */
	ACCOUNT_THROTTLED,	 /* it could run, but its cgroup's quota was used up */
	ACCOUNT_STOLEN,		 /* it had a CPU, but the hypervisor did not run it */
	ACCOUNT_SYSCALL, /* in the kernel, running or waiting: a trace of user code cannot tell */
	ACCOUNT_UNKNOWN, /* not known: gaps, and time for which no stack was taken */
	ACCOUNT_PARTS,
};

/* The words for each part. */
extern const struct account_part_words {
	const char *name; /* "on CPU" */
	const char *key;  /* of -json: "on_cpu_ns" */
	char letter;	  /* in the timelines of summaries */
} account_parts[ACCOUNT_PARTS];

enum cause_kind {
	CAUSE_CPU,	  /* code of a function, and of what it calls */
	CAUSE_KERNEL,	  /* as CAUSE_CPU, but most of it is the kernel's code */
	CAUSE_BLOCKED,	  /* it waited for something */
	CAUSE_RECLAIM,	  /* it freed memory so that an allocation could go on */
	CAUSE_INTERRUPTS, /* its CPU ran interrupts and softirqs */
	CAUSE_WAITING,	  /* ready to run, without a CPU */
	CAUSE_THROTTLED,
	CAUSE_STOLEN,
	CAUSE_TRACED,  /* in a trace of every call: a function's own code */
	CAUSE_SYSCALL, /* as CAUSE_TRACED, but a system call, running or waiting */
	CAUSE_UNKNOWN,
	CAUSE_KINDS,
};

/* The words for each kind. */
extern const struct cause_kind_words {
	const char *key;     /* of -json and the metrics: "on_cpu" */
	const char *name;    /* "on the CPU" */
	const char *opening; /* printed before its place: "on the CPU, in "; NULL: no place */
} cause_kinds[CAUSE_KINDS];

#endif
