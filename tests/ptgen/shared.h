/* SPDX-License-Identifier: MIT */
/*
 * The memory that the driver (ptgen) and the plugin in qemu share: what to generate, and what was.
 * It outlives the traced process, however that ends.
 */
#ifndef MTBPF_TESTS_PTGEN_SHARED_H
#define MTBPF_TESTS_PTGEN_SHARED_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/soft/pt_stream.h"

#define PTGEN_THREADS 64
#define PTGEN_MAPS    1024
#define PTGEN_PAGES   4096
#define PTGEN_PAGE    4096

/*
 * The clock: an instruction is a core cycle at 3.0 GHz; the TSC runs at 2.4 GHz, the CTC at 24 MHz.
 * TSC to ns is a multiplication by 1 / 2.4, in fixed point.
 */
#define PTGEN_CBR	 30
#define PTGEN_NOM_FREQ	 24
#define PTGEN_CTC_TICKS	 100
#define PTGEN_TIME_SHIFT 31
#define PTGEN_TIME_MULT	 894784853u
#define PTGEN_TSC_START	 (1ull << 40)
/* A system call is 1 us away from user code. */
#define PTGEN_SYSCALL_TICKS 2400

struct ptgen_config {
	struct pt_stream_config stream;
	uint64_t ring_size;	  /* bytes a thread, a power of two */
	uint64_t overflow_period; /* bytes; 0: no overflows */
	uint64_t skip;		  /* instructions of the first thread before the recording */
	uint64_t limit;		  /* instructions recorded, of all threads; 0: all there are */
	uint64_t argc;		  /* the program's */
	uint64_t stack_distance;  /* struct truth.distance */
	bool go;		  /* a stack is a goroutine's */
	char comm[16];
	char truth_path[PATH_MAX]; /* empty: none is wanted */
};

struct ptgen_thread {
	pid_t tid;
	char comm[16];
	uint64_t start_tsc;
	uint64_t written; /* bytes ever; the ring holds the last ring_size of them */
	/* The stream is being changed: where the process dies in this, it cannot be completed. */
	volatile bool busy;
	volatile bool ended;		 /* nothing is recorded any more */
	uint64_t instructions, branches; /* recorded */
	uint64_t overflows;
	/* Went where the last instruction does not go, and no signal explains it. */
	uint64_t irregular;
	struct pt_stream stream;
};

/* Code of a file. */
struct ptgen_map {
	uint64_t tsc;
	uint64_t start, len, pgoff, ino;
	uint32_t maj, min;
	char path[PATH_MAX];
};

/* Code of no file: a page that code ran on, as it was when that was last translated. */
struct ptgen_page {
	uint64_t start;
	uint8_t bytes[PTGEN_PAGE];
};

struct ptgen_shared {
	struct ptgen_config config;
	pid_t pid;
	char error[256];	   /* why nothing could be recorded; empty: it could */
	_Atomic bool stopping;	   /* the limit is reached */
	_Atomic bool begun;	   /* the instructions to skip are over */
	_Atomic uint64_t now;	   /* the latest TSC of all threads */
	_Atomic uint64_t recorded; /* instructions; behind by a bit where there are many threads */
	_Atomic uint32_t n_threads;
	uint32_t n_maps, n_pages;
	_Atomic uint32_t lost; /* threads, maps, pages for which there was no room */
	struct ptgen_thread threads[PTGEN_THREADS];
	struct ptgen_map maps[PTGEN_MAPS];
	struct ptgen_page pages[PTGEN_PAGES];
};

static inline uint64_t ptgen__ns(uint64_t tsc)
{
	uint64_t rem = tsc & ((1ull << PTGEN_TIME_SHIFT) - 1);

	return (tsc >> PTGEN_TIME_SHIFT) * PTGEN_TIME_MULT +
	       (rem * PTGEN_TIME_MULT >> PTGEN_TIME_SHIFT);
}

/* Thread i's ring. */
static inline uint8_t *ptgen_shared__ring(struct ptgen_shared *shared, uint32_t i)
{
	size_t head = (sizeof(*shared) + PTGEN_PAGE - 1) & ~(size_t)(PTGEN_PAGE - 1);

	return (uint8_t *)shared + head + (size_t)i * shared->config.ring_size;
}

static inline size_t ptgen_shared__size(uint64_t ring_size)
{
	size_t head = (sizeof(struct ptgen_shared) + PTGEN_PAGE - 1) & ~(size_t)(PTGEN_PAGE - 1);

	return head + (size_t)PTGEN_THREADS * ring_size;
}

#endif
