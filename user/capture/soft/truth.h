/* SPDX-License-Identifier: MIT */
/*
 * The real stack of one stepped thread, from its stack pointer; tests compare decoded stacks with
 * it. A frame lives as long as its return address is at or above the stack pointer, or the thread
 * is on another stack.
 */
#ifndef MTBPF_CAPTURE_SOFT_TRUTH_H
#define MTBPF_CAPTURE_SOFT_TRUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "util/vec.h"

struct truth_frame {
	uint64_t slot;	/* address of its return address; for a signal frame, just above it */
	uint64_t entry; /* start of a signal handler that has not run yet; otherwise 0 */
	bool is_signal;
};

/* The frames of one stack. */
struct truth_depth {
	VEC(struct truth_frame) frames; /* the known frames, outermost first */
	/* Depth without known frames: 0, and 1 less per return from a call before the log. */
	long base;
	long waiting; /* number of frames of handlers that have not run yet */
};

/* A stack that the thread is not using now, if it alternates between several. */
struct truth_stack {
	uint64_t low, high; /* range of its stack pointers so far */
	uint64_t key,
		top; /* key: of truth__use_stack(); top: the stack's end when it was first used */
	uint64_t entry; /* slot of the return that first switched to it; 0: a jump did */
	struct truth_depth depth;
};

struct truth {
	FILE *log; /* not owned; NULL: nothing is kept */
	pid_t tid;
	/*
	 * A stack pointer further than this from earlier ones belongs to another stack. 0: there is
	 * only one stack. Otherwise lines end in " STACK", which counts from 0.
	 */
	uint64_t distance;
	bool by_key; /* the caller identifies the stack; lines have its number, too */
	VEC(struct truth_stack) stacks;
	size_t stack; /* index of the current stack */
	struct truth_depth now;
};

void truth__init(struct truth *truth, FILE *log, pid_t tid);
void truth__fini(struct truth *truth);

/*
 * The thread now runs on the stack that the caller identifies by this key (0: not known yet), which
 * ends at `top` now; it may have been moved. Returns the amount to add to its addresses for them to
 * stay the same.
 */
uint64_t truth__use_stack(struct truth *truth, uint64_t key, uint64_t top);

/* A return address was put at sp, the current stack pointer, without a call. */
void truth__pushed(struct truth *truth, uint64_t sp);

/* A call to `to`; sp is the stack pointer after it. Logs "TID TIME call TO DEPTH". */
void truth__call(struct truth *truth, uint64_t time_ns, uint64_t to, uint64_t sp);
/* A return to `to`, an address read at `slot`. Logs "TID TIME return TO DEPTH". */
void truth__return(struct truth *truth, uint64_t time_ns, uint64_t to, uint64_t slot);
/* A jump has moved the stack pointer to sp: it switched stacks, or left frames. */
void truth__at(struct truth *truth, uint64_t sp);
/* Logs a transfer as `kind`, without a change of frames. */
void truth__jump(struct truth *truth, uint64_t time_ns, const char *kind, uint64_t to);
/*
 * The kernel set up a signal handler's frame: the handler will run at `entry`, with its return
 * address at sp. It is not logged, and not counted in the depth, before it runs: a second signal
 * may come first.
 */
void truth__signal(struct truth *truth, uint64_t entry, uint64_t sp);
/* rt_sigreturn was called. */
void truth__sigreturn(struct truth *truth);
/* The instruction at ip ran. */
void truth__ran(struct truth *truth, uint64_t ip);
/* execve(2) has replaced the stack. */
void truth__reset(struct truth *truth);

#endif
