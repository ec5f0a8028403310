/* SPDX-License-Identifier: MIT */
/*
 * The stepper: a separate process that single-steps every thread of a target with ptrace(2) and
 * writes what they do into shared memory. If mtbpf is killed, the stepper lives on until it has
 * released the target: a tracer that dies while threads are in a step leaves their trap flag set,
 * and the next trap kills the target.
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
 * The memory that the stepper writes and mtbpf reads, as the CPU and mtbpf do with perf's AUX area:
 * rings of PT bytes, and what perf's sideband would report.
 */
#define SOFT_MAX_THREADS 256
#define SOFT_MAX_MAPS	 2048
#define SOFT_PAGE	 4096

enum soft_state {
	SOFT_STARTING,
	SOFT_RUNNING,
	SOFT_FROZEN,
	SOFT_EXITED,
	SOFT_FAILED, /* could not attach; `error` says why */
};

struct soft_thread {
	pid_t tid;
	char comm[16];
	uint64_t start_ns, last_ns;
	uint64_t written;	       /* total bytes; the ring has the last ring_size of them */
	_Atomic uint64_t ready, taken; /* with spool_dir: bytes that mtbpf may read, and has read */
};

struct soft_map {
	struct rec_map map; /* its path is not valid; see below */
	char path[PATH_MAX];
};

struct soft_shared {
	_Atomic int state;
	_Atomic int error; /* errno of SOFT_FAILED */
	/* errno if a start or stop is not watched; E2BIG: too many addresses; 0: all are */
	_Atomic int breakpoint_error;
	_Atomic int unseen; /* threads that still run freely, before their first step */
	_Atomic int stuck;  /* threads that could not be released yet (uninterruptible sleep) */
	uint64_t ring_size; /* bytes, a power of two */
	_Atomic uint64_t frozen_ns;
	uint64_t waited_ns; /* time waiting for mtbpf to read the rings */
	uint64_t steps;	    /* instructions stepped, for the summary */
	_Atomic uint32_t n_threads, lost_threads;
	uint32_t n_maps, lost_maps;
	uint8_t uprobes_page[SOFT_PAGE]; /* the kernel's page, if a return probe is set */
	size_t uprobes_len;
	uint64_t uprobes_start; /* its address in the target; 0: not yet known */
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

/* The commands of mtbpf to the stepper are single bytes. End of file means detach. */
#define SOFT_COMMAND_FREEZE 'F'

/* One breakpoint of the CPU per start. */
#define SOFT_MAX_STARTS 4

struct source_config;

/*
 * Steps config's process, and writes packets as `stream` says, until the target is released or has
 * ended. The caller then exits the process. control_fd receives SOFT_COMMAND_*, and sends a byte at
 * each change of state. With config->spool_dir a thread waits if its ring is full: nothing is
 * overwritten. config->starts have at most SOFT_MAX_STARTS addresses in the target.
 */
void stepper__run(struct soft_shared *shared, const struct source_config *config,
		  const struct pt_stream_config *stream, int control_fd);

#endif
