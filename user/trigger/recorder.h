/* SPDX-License-Identifier: MIT */
/*
 * The flight recorder's half in the kernel, bpf/recorder.bpf.c: it filters the clocks and faults of
 * CPUs for the target, takes the stacks of switches, and keeps a log per CPU of what the scheduler
 * did with the target's threads.
 */
#ifndef MTBPF_TRIGGER_RECORDER_H
#define MTBPF_TRIGGER_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "mtbpf_shared.h"
#include "trigger/trigger.h"

struct recorder;

/* The threads to record: of one process, of several, or of a cgroup if tgid and n_tgids are 0. */
struct recorder_config {
	pid_t tgid;
	const pid_t *tgids; /* read while it loads */
	size_t n_tgids;
	bool with_children; /* of tgids: what they fork from now on as well */
	int cgroup_fd;
	uint64_t syscall_thresh_ns; /* system calls of at least that are noted; 0: none */
	size_t log_size;	    /* bytes of a CPU's log, rounded up to a power of two */
	size_t stacks_size; /* the same of its ring of stacks; 0: perf takes stacks at switches */
	uint32_t
		stack_copy; /* with that: bytes of the user stack at most; 0: frame pointers only */
	/* The trigger that freezes it and, with_regions, knows the threads in regions; may be NULL.
	 */
	const struct trigger *trigger;
	bool with_regions;
	bool from_exec; /* recorder__begin() waits, the first time, for the target's execve */
};

/*
 * Loads and attaches; nothing is written before recorder__begin(). NULL with errno if the
 * kernel has no BTF, the rights are missing, or mtbpf runs in a pid namespace of its own
 * (EOPNOTSUPP); prints only at -v.
 */
struct recorder *recorder__new(const struct recorder_config *config);
void recorder__free(struct recorder *recorder);

/* True if the kernel has all tracepoints that interrupt time needs. */
bool recorder__counts_interrupts(const struct recorder *recorder);
/* True if the kernel has quotas, or a clock of stolen time. False before the first switch. */
bool recorder__counts_throttled(const struct recorder *recorder);
bool recorder__counts_stolen(const struct recorder *recorder);

/* Bytes of the logs, and rings, of all CPUs together. */
size_t recorder__memory(const struct recorder *recorder);

/* Returns the size of a CPU's ring of stacks in bytes; 0 if perf takes the stacks. */
size_t recorder__ring_size(const struct recorder *recorder);
/*
 * Returns how far the fullest ring of stacks looks back when it is full, by the bytes a second that
 * were written since recorder__begin(). UINT64_MAX: nothing was written.
 */
uint64_t recorder__lookback_ns(const struct recorder *recorder);

/* A stack in a ring, until recording goes on. */
struct recorder_stack {
	const uint64_t *ips;
	uint32_t n_ips;
	const uint64_t *regs; /* bx, bp, sp, ip, r12 to r15 */
	const uint8_t *copy;  /* from sp on */
	size_t size;	      /* 0: there is no copy */
};

/* The stack of a record; false: it has none, or it has been overwritten. */
bool recorder__find_stack(const struct recorder *recorder, const struct mt_record *record,
			  struct recorder_stack *stack);

/* The program that lets the target's samples pass: for PERF_EVENT_IOC_SET_BPF. */
int recorder__gate(const struct recorder *recorder);

/* It is written from now on, or until now. */
void recorder__begin(struct recorder *recorder);
void recorder__stop(struct recorder *recorder);

/* Counts since it was loaded, of all CPUs. */
struct recorder_counts {
	uint64_t switches; /* of the target's threads, away from a CPU */
	uint64_t samples;  /* by the clock, and of page faults */
};
/* 0 or -errno. */
int recorder__count(const struct recorder *recorder, struct recorder_counts *counts);

/*
 * Stops it, and hands over what was recorded since it began, by time. *since_ns is from when on
 * the logs, and rings, of all CPUs are complete. What `take` returns but 0 ends that, and is
 * returned; or -errno.
 */
int recorder__take(struct recorder *recorder, uint64_t *since_ns,
		   int (*take)(void *ctx, const struct mt_record *record), void *ctx);

#endif
