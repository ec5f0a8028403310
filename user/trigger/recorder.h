/* SPDX-License-Identifier: MIT */
/*
 * The flight recorder's BPF programs, bpf/recorder.bpf.c: they filter the timed samples and page
 * faults of CPUs for the target, take stacks at context switches, and keep a log per CPU of what
 * the scheduler did with the target's threads.
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
	const pid_t *tgids; /* read by recorder__new() only */
	size_t n_tgids;
	bool with_children; /* with tgids: record the children that they fork from now on, too */
	int cgroup_fd;
	uint64_t syscall_thresh_ns; /* log system calls that take at least this long; 0: none */
	size_t log_size;	    /* bytes of each CPU's log, rounded up to a power of two */
	size_t stacks_size; /* same for each ring of stacks; 0: perf takes stacks at switches */
	uint32_t
		stack_copy; /* with stacks_size: most stack bytes to copy; 0: frame pointers only */
	/*
	 * The trigger that freezes the recorder and, if with_regions, knows which threads are in
	 * regions; may be NULL.
	 */
	const struct trigger *trigger;
	bool with_regions;
	bool from_exec; /* the first recorder__begin() waits for the target's execve */
};

/*
 * Loads and attaches the programs; nothing is recorded before recorder__begin(). NULL with errno if
 * the kernel lacks BTF, the rights are missing, or mtbpf runs in a pid namespace of its own
 * (EOPNOTSUPP). Prints only at -v.
 */
struct recorder *recorder__new(const struct recorder_config *config);
void recorder__free(struct recorder *recorder);

/* Kinds of lost time that this kernel reports. */
struct recorder_abilities {
	bool interrupts; /* it has all tracepoints that are needed to measure interrupt time */
	/* It has quotas, and a clock of stolen time; false before the first switch. */
	bool throttled, stolen;
};
struct recorder_abilities recorder__abilities(const struct recorder *recorder);

/* Returns the size of a CPU's ring of stacks in bytes; 0 if perf takes the stacks. */
size_t recorder__ring_size(const struct recorder *recorder);
/*
 * Returns the lookback of the fastest-filling ring of stacks once it is full, from the bytes per
 * second written since recorder__begin(). UINT64_MAX: nothing was written.
 */
uint64_t recorder__lookback_ns(const struct recorder *recorder);

/* A stack in a ring; valid until recording continues. */
struct recorder_stack {
	const uint64_t *ips;
	uint32_t n_ips;
	const uint64_t *regs; /* bx, bp, sp, ip, r12 to r15 */
	const uint8_t *copy;  /* from sp on */
	size_t size;	      /* bytes of copy; 0: none */
};

/* Finds the stack of a record. False: the record comes without a stack, or the ring has overwritten
 * it. */
bool recorder__find_stack(const struct recorder *recorder, const struct mt_record *record,
			  struct recorder_stack *stack);

/*
 * The program that lets the target's timed samples and page faults pass: for
 * PERF_EVENT_IOC_SET_BPF.
 */
int recorder__gate(const struct recorder *recorder);
/* The same for the stacks of switches. */
int recorder__switch_gate(const struct recorder *recorder);

void recorder__begin(struct recorder *recorder);
void recorder__stop(struct recorder *recorder);

/* Counts of all CPUs since recorder__new(). */
struct recorder_counts {
	uint64_t switches; /* of the target's threads, away from a CPU */
	uint64_t samples;  /* by the clock, and of page faults */
};
/* 0 or -errno. */
int recorder__count(const struct recorder *recorder, struct recorder_counts *counts);

/*
 * Stops recording and passes the records since recorder__begin() to `take`, in order of time. Sets
 * *since_ns to the time from which on the logs and rings of all CPUs are complete. A non-zero
 * result of `take` stops and is returned. 0 or -errno.
 */
int recorder__take(struct recorder *recorder, uint64_t *since_ns,
		   int (*take)(void *ctx, const struct mt_record *record), void *ctx);

#endif
