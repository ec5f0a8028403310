/* SPDX-License-Identifier: MIT */
/*
 * Builds one thread's slices. The open slices are the current stack; each new stack of the thread
 * keeps the common part and closes the rest. Times never run backwards.
 */
#ifndef MTBPF_SAMPLED_SLICES_H
#define MTBPF_SAMPLED_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/call_tree.h"
#include "target/unwind/unwind.h"
#include "util/vec.h"

/* One frame of a stack, as it was at one moment. */
struct seen {
	const struct function *function; /* NULL: unknown code, or a kind without a function */
	uint64_t ip;
	uint64_t return_ip; /* where it returns to in its caller; 0 for the first frame */
	uint8_t kind;	    /* enum call_kind */
};

/* First frame of a stack that lacks an unknown number of its outermost callers. */
#define SEEN_NO_CALLERS ((struct seen){.kind = CALL_NO_CALLERS})

/* The number of a stack's user frames, which precede its kernel frames. */
static inline size_t seen__user(const struct seen *stack, size_t n)
{
	while (n && stack[n - 1].kind == CALL_IN_KERNEL)
		n--;
	return n;
}

/* States of the end of a call whose start is known. */
enum exact_end {
	END_UNKNOWN, /* the end is not known */
	END_KNOWN,   /* it returned at end_ns */
	END_AT_MOST, /* it was left without a return, at the latest at end_ns */
	END_OPEN,    /* it has not returned */
};

/* A call that was entered at exactly start_ns, whether or not a stack shows it. */
struct entered {
	const struct function *function;
	uint64_t start_ns, end_ns;
	uint64_t returns_to;	       /* 0: not known */
	const struct function *caller; /* the function of returns_to; NULL: not known */
	bool is_usual;	       /* returns_to and caller are those of another call of the function */
	uint8_t end;	       /* enum exact_end */
	uint8_t kind;	       /* CALL_FUNCTION, or, without a function, CALL_SYSCALL */
	uint8_t reason;	       /* of CALL_SYSCALL: enum syscall_reason */
	bool is_innermost;     /* it calls no other function: the hit was in the kernel */
	struct waits_for what; /* of a system call; `call` is ignored */
	/* Set by place_calls() for the next stack: */
	bool is_placed; /* its place in the stack is `at` */
	bool is_hidden; /* its own frame is missing there */
	bool is_lost;	/* it should be in the stack, but no place fits */
	size_t at;
};

struct open_slice {
	uint32_t call; /* in tree->calls */
	struct seen seen;
	/* When an exact call ends: until then it is open. 0: the call is not exact. */
	uint64_t exit_ns;
	uint64_t returns_to;
	uint8_t end;	   /* enum exact_end */
	bool is_innermost; /* as in struct entered */
	bool has_blocked;  /* the thread left its CPU to wait while this was the innermost slice */
	size_t next;	   /* index of its first callee in the stack that is being added */
};

/* open_slice.next of a slice that is not part of the stack. */
#define NOT_IN_STACK SIZE_MAX

struct slices {
	struct call_tree *tree;
	uint64_t period_ns; /* of the samples; 0: not known */
	uint64_t last_ns;   /* slices are final up to here; 0: before the first */
	bool is_begun;	    /* recording began at last_ns; nothing has been seen yet */
	/* The time of the last stack or exact end, plus the time off the CPU since; 0: none yet. */
	uint64_t known_ns;
	uint64_t off_ns;	     /* when the thread left its CPU, if it is off */
	uint64_t stolen_until_ns;    /* the hypervisor has the CPU until then; 0: it does not */
	VEC(struct open_slice) open; /* outermost first */
	VEC(struct entered) entered; /* since the last stack, in ascending order */
	VEC(struct seen) cut;	     /* buffer of slices__see() */
	struct done_by next;	     /* who runs on the thread's CPU instead; tid 0: not known */
	uint64_t next_ns;	     /* since when `next` runs there */
	struct waits_for wait;	     /* what the thread waits for if it leaves its CPU next */
	bool has_wait;
	uint64_t woken_ns; /* its last wake-up; 0: none since EARLY_NS before it left its CPU */
	bool off;	   /* the innermost slice is time off the CPU */
	bool failed;	   /* out of memory: no more slices are added */
};

void slices__fini(struct slices *slices);

/* The recording of the thread starts at time_ns; nothing else is known yet. */
void slices__begin(struct slices *slices, uint64_t time_ns);
/*
 * Adds the stack at one moment, outermost frame first. A stack that starts with SEEN_NO_CALLERS
 * says nothing about the callers of the rest. A stack that lacks an exact call that is known to be
 * running is treated in the same way.
 */
void slices__see(struct slices *slices, uint64_t time_ns, const struct seen *stack, size_t n);
/*
 * Adds the call of a function, or a system call, with an exact start. Times ascend over all
 * functions.
 */
void slices__enter(struct slices *slices, const struct entered *entered);
/* The number of the function's calls with an exact start that are known to run at time_ns. */
size_t slices__count_calls(const struct slices *s, const struct function *function,
			   uint64_t time_ns);
/* Appends the exact calls that run at time_ns and whose return address is known, latest first. */
void slices__running(struct slices *s, uint64_t time_ns, probed_calls *out);
/*
 * Notes which thread runs on the CPU instead, if this one is off its CPU or about to be; tid 0: an
 * idle CPU.
 */
void slices__replaced(struct slices *slices, uint64_t time_ns, const struct done_by *by);
/* Notes what the thread waits for in a system call, before slices__off(); `call` is ignored. */
void slices__waits(struct slices *slices, const struct waits_for *wait);
/* The thread was woken, by `by`; its tid is 0 if nobody did it or it is not known who. */
void slices__woken(struct slices *slices, uint64_t time_ns, const struct done_by *by);
/* The thread left its CPU; reason: enum off_reason. */
void slices__off(struct slices *slices, uint64_t time_ns, uint8_t reason);
/* Since when the thread has been ready to run without running; 0: it is not waiting for a CPU. */
uint64_t slices__waits_since(const struct slices *slices);
/*
 * The thread was throttled for `ns` of the time that it has been ready to run. `text` names the
 * cgroup whose quota was used up; the caller keeps it. Call this before slices__on().
 */
void slices__throttled(struct slices *slices, uint64_t time_ns, uint64_t ns, const char *text);
/* The hypervisor took the CPU from start_ns to end_ns while the thread ran on it. */
void slices__stolen(struct slices *slices, uint64_t start_ns, uint64_t end_ns);
/* The thread is back on a CPU. Does nothing if it was not off. */
void slices__on(struct slices *slices, uint64_t time_ns);
/* Ends the recording of the thread: open slices are closed with an inferred end. */
void slices__end(struct slices *slices, uint64_t time_ns);
/* Adds a GAP slice for unrecorded time, after slices__end(). */
void slices__gap(struct slices *slices, uint64_t start_ns, uint64_t end_ns, uint8_t reason);

#endif
