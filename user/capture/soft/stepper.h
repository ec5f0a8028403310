/* SPDX-License-Identifier: MIT */
/*
 * The stepper: a process of its own that single-steps every thread of a target with ptrace and
 * writes what they do into shared memory. It outlives a killed mtbpf just long enough to let go of
 * the target: a tracer that dies with threads in mid-step leaves the trap flag set, and the next
 * trap kills the target.
 */
#ifndef MTBPF_CAPTURE_SOFT_STEPPER_H
#define MTBPF_CAPTURE_SOFT_STEPPER_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/recording/recording.h"
#include "capture/soft/pt_stream.h"

/*
 * The memory that the stepper writes and mtbpf reads, as the CPU and perf do with an AUX area:
 * rings of PT bytes, and beside them what perf's sideband would say.
 */
#define SOFT_MAX_THREADS 256
#define SOFT_MAX_MAPS	 2048
#define SOFT_PAGE	 4096

enum soft_state {
	SOFT_STARTING,
	SOFT_RUNNING,
	SOFT_FROZEN,
	SOFT_EXITED,
	SOFT_FAILED, /* could not attach: error */
};

/* mtbpf commands the stepper by single bytes; end of file means detach. */
#define SOFT_COMMAND_FREEZE 'F'

struct soft_thread {
	pid_t tid;
	char comm[16];
	uint64_t start_ns, last_ns;
	uint64_t written;	       /* bytes ever; the ring holds the last ring_size of them */
	_Atomic uint64_t ready, taken; /* where all is kept: of these to be taken; taken */
};

struct soft_map {
	struct rec_map map; /* but its path: */
	char path[PATH_MAX];
};

struct soft_shared {
	_Atomic int state;
	_Atomic int error;	      /* errno of SOFT_FAILED */
	_Atomic int breakpoint_error; /* errno of a breakpoint at a start; 0: none failed */
	_Atomic int unseen;	      /* threads that run freely still, before their first step */
	_Atomic int stuck;  /* threads that could not be let go of yet (uninterruptible sleep) */
	uint64_t ring_size; /* bytes, a power of two */
	uint64_t frozen_ns;
	uint64_t waited_ns; /* for mtbpf to take what rings held */
	uint64_t steps;	    /* instructions stepped, for the summary */
	uint32_t n_threads, lost_threads;
	uint32_t n_maps, lost_maps;
	uint8_t uprobes_page[SOFT_PAGE]; /* the kernel's own, where a return probe is set */
	size_t uprobes_len;
	uint64_t uprobes_start; /* where the target has it; 0: not yet */
	struct soft_thread threads[SOFT_MAX_THREADS];
	struct soft_map maps[SOFT_MAX_MAPS];
};

/* Thread i's ring. */
static inline uint8_t *soft_shared__ring(struct soft_shared *shared, uint32_t i)
{
	size_t head = (sizeof(*shared) + SOFT_PAGE - 1) & ~(size_t)(SOFT_PAGE - 1);

	return (uint8_t *)shared + head + (size_t)i * shared->ring_size;
}

static inline size_t soft_shared__size(uint64_t ring_size)
{
	size_t head = (sizeof(struct soft_shared) + SOFT_PAGE - 1) & ~(size_t)(SOFT_PAGE - 1);

	return head + (size_t)SOFT_MAX_THREADS * ring_size;
}

/* A CPU has as many breakpoints. */
#define SOFT_MAX_STARTS 4

struct stepper_config {
	pid_t pid;
	int control_fd; /* commands in (SOFT_COMMAND_*), a byte out at each change of state */
	int freeze_fd;	/* freezes by itself when readable; -1: none */
	bool from_exec;
	bool keeps_all; /* nothing in a ring is overwritten: its thread waits */
	/* Steps only from a start to a stop, or everything if there are none. At most
	 * SOFT_MAX_STARTS. */
	const struct rec_place *starts, *stops;
	size_t n_starts, n_stops;
	const char *truth_path; /* or NULL */
	struct pt_stream_config stream;
};

/* Runs until the target is let go or gone; the caller then exits the process. */
void stepper__run(struct soft_shared *shared, const struct stepper_config *config);

#endif
