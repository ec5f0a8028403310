/* SPDX-License-Identifier: MIT */
/*
 * A single-stepped thread: writes the effect of each step as packets into its ring in shared
 * memory.
 */
#ifndef MTBPF_CAPTURE_SOFT_STEPPED_H
#define MTBPF_CAPTURE_SOFT_STEPPED_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "capture/recording/recording.h"
#include "capture/soft/pt_stream.h"
#include "capture/soft/truth.h"
#include "util/insn.h"

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
	SOFT_FAILED, /* could not attach: error */
};

struct soft_thread {
	pid_t tid;
	char comm[16];
	uint64_t start_ns, last_ns;
	uint64_t written;	       /* total bytes; the ring has the last ring_size of them */
	_Atomic uint64_t ready, taken; /* if everything is kept: bytes to read; bytes read */
};

struct soft_map {
	struct rec_map map; /* without its path, which is: */
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
	uint64_t frozen_ns;
	uint64_t waited_ns; /* time waiting for mtbpf to read the rings */
	uint64_t steps;	    /* instructions stepped, for the summary */
	uint32_t n_threads, lost_threads;
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

struct stepped {
	pid_t tid;
	bool attached;
	bool stopped;	      /* in a ptrace stop; what PTRACE_DETACH needs */
	bool unseen;	      /* still runs freely: its first stop has not come */
	bool waiting;	      /* seized, but not stepped before its execve or a start */
	bool has_breakpoints; /* it stops at the starts */
	bool skip_next;	      /* the next step stop executed no instruction (execve) */
	int inject;	      /* the signal to deliver when it goes on */
	struct pt_stream stream;
	struct soft_shared *shared;
	struct soft_thread *out;
	uint8_t *ring;
	struct truth truth;
	/* The instruction that runs next. */
	uint64_t ip, sp;
	uint64_t fetched_ns;
	uint64_t syscall_nr; /* rax */
	struct insn insn;    /* len 0: the code could not be read */
	bool under_probe; /* the file does not have the int3 at this address: the live byte may be
			     0xcc */
	bool is_pushf;
	bool is_unreadable; /* not a byte of the code could be read */
};

void stepped__init(struct stepped *t, pid_t tid, struct soft_shared *shared, uint32_t index,
		   const struct pt_stream_config *config, FILE *truth_log);
void stepped__fini(struct stepped *t);

/* Fetches the instruction that runs next: regs and the bytes at its ip. */
void stepped__fetch(struct stepped *t, const struct user_regs_struct *regs);

/* The fetched instruction ran, with regs as its result. True: it was a system call. */
bool stepped__executed(struct stepped *t, const struct user_regs_struct *regs);
/*
 * The fetched instruction has a uprobe: the kernel handled its int3 and continued after the
 * instruction.
 */
void stepped__probed(struct stepped *t, const struct user_regs_struct *regs);
/* A signal handler was entered before the fetched instruction ran. */
void stepped__signalled(struct stepped *t, const struct user_regs_struct *regs);
/* execve replaced the program. */
void stepped__exec(struct stepped *t);
/* The thread is not recorded any more, until the next stepped__fetch(). */
void stepped__leave(struct stepped *t);
/* Recording stops here; in_syscall: inside the fetched syscall instruction. */
void stepped__end(struct stepped *t, bool in_syscall);

#endif
