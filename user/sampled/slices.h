/* SPDX-License-Identifier: MIT */
/*
 * The slices of one thread, while they grow: what is open stands on a stack, and what is common to
 * it and the next stack stays. Times never run backwards.
 */
#ifndef MTBPF_SAMPLED_SLICES_H
#define MTBPF_SAMPLED_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/call_tree.h"
#include "util/vec.h"

/* A frame of a stack, as it was seen at one moment. */
struct seen {
	const struct function *function; /* NULL: no code is known there, or kind is not of one */
	uint64_t ip;
	uint64_t return_ip; /* in the frame that called it; 0: it is the first */
	uint8_t kind;	    /* enum call_kind */
};

/* In front of a stack that lacks its outermost callers, and as many as may be. */
#define SEEN_NO_CALLERS ((struct seen){.kind = CALL_NO_CALLERS})

/* So many of a stack are the user's: the kernel's part comes last. */
static inline size_t seen__user(const struct seen *stack, size_t n)
{
	while (n && stack[n - 1].kind == CALL_IN_KERNEL)
		n--;
	return n;
}

/* How far the end of a call is known whose begin is. */
enum exact_end {
	END_UNKNOWN, /* not at all */
	END_KNOWN,   /* it returned at end_ns */
	END_AT_MOST, /* it was left without a return, at the latest at end_ns */
	END_OPEN,    /* it has not returned */
};

/* A call that was entered exactly then, whether or not a stack shows it. */
struct entered {
	const struct function *function;
	uint64_t start_ns, end_ns;
	uint64_t returns_to;   /* 0: not known */
	uint8_t end;	       /* enum exact_end */
	uint8_t kind;	       /* CALL_FUNCTION, or, without a function, CALL_SYSCALL */
	uint8_t reason;	       /* of the latter: enum syscall_reason */
	struct waits_for what; /* of a system call; `call` is not looked at */
	/* In the next stack, as far as it is in that: slices_exact.c. */
	bool is_placed, is_hidden, is_lost;
	size_t at;
};

struct open_slice {
	uint32_t call; /* in tree->calls */
	struct seen seen;
	/* Of one that is exact, and runs on until it is seen to end: when; else 0. */
	uint64_t exit_ns;
	uint64_t returns_to;
	uint8_t end; /* enum exact_end */
	size_t next; /* of the stack that is looked at: what runs in it begins there */
};

/* No part of a stack. */
#define NOT_IN_STACK SIZE_MAX

struct slices {
	struct call_tree *tree;
	uint64_t period_ns; /* of the samples; 0: not known */
	uint64_t last_ns;   /* up to when the slices are settled; 0: there are none */
	bool is_begun;	    /* since then nothing has been seen */
	uint64_t known_ns;  /* up to when stacks tell what ran, in time on the CPU; 0: none has */
	uint64_t off_ns;    /* when it left its CPU, if it is off */
	uint64_t stolen_until_ns;    /* it is off as its CPU is, until then; 0: it is not */
	VEC(struct open_slice) open; /* outermost first */
	VEC(struct entered) entered; /* since the last stack, ascending */
	VEC(struct seen) cut;	     /* a stack that is found to lack callers, while it is seen */
	struct done_by next;	     /* who runs in its place; tid 0: not known */
	uint64_t next_ns;	     /* from then on */
	struct waits_for wait;	     /* what it leaves its CPU for, if it does next */
	bool has_wait;
	uint64_t woken_ns; /* when it was woken last; 0: not since, or just before, it left its CPU
			    */
	bool off;	   /* the innermost is time off the CPU */
	bool failed;	   /* out of memory: nothing more is added */
};

void slices__fini(struct slices *slices);

/* It is recorded from then on, and nothing is known of it yet. */
void slices__begin(struct slices *slices, uint64_t time_ns);
/*
 * The stack at one moment, outermost first. If its first is SEEN_NO_CALLERS it tells nothing of
 * who has called the rest. Otherwise that is found out if a call that is known to run is not in it.
 */
void slices__see(struct slices *slices, uint64_t time_ns, const struct seen *stack, size_t n);
/*
 * A call whose begin was seen, function or system call. Ascending by time, in the order of all
 * else.
 */
void slices__enter(struct slices *slices, const struct entered *entered);
/* Whether such a call, whose begin was seen, is known to run at that time. */
bool slices__has_call(const struct slices *slices, const struct function *function,
		      uint64_t time_ns);
/* Who runs in its place from then on, if it is off or about to be; tid 0: nobody. */
void slices__replaced(struct slices *slices, uint64_t time_ns, const struct done_by *by);
/* It is in a system call, about to leave its CPU; `call` is not looked at. */
void slices__waits(struct slices *slices, const struct waits_for *wait);
/* What it waited for has come, thanks to somebody; tid 0: to nobody, or it is not known. */
void slices__woken(struct slices *slices, uint64_t time_ns, const struct done_by *by);
/* The thread left its CPU; enum off_reason. */
void slices__off(struct slices *slices, uint64_t time_ns, uint8_t reason);
/* Since when it has been ready to run, and is not running; 0: it is not so. */
uint64_t slices__waits_since(const struct slices *slices);
/*
 * Of the time that it has been ready to run, up to now, so much was since a quota was used up: by
 * the cgroup that the text tells of, which stays the caller's. Before slices__on().
 */
void slices__throttled(struct slices *slices, uint64_t time_ns, uint64_t ns, const char *text);
/* While it ran, its CPU did not. */
void slices__stolen(struct slices *slices, uint64_t start_ns, uint64_t end_ns);
/*
 * It is found to run, and nobody has seen how it came to that: what woke it may be hidden as well.
 * Nothing where it was not off.
 */
void slices__found(struct slices *slices, uint64_t time_ns);
/* It is back; nothing where it was not off. */
void slices__on(struct slices *slices, uint64_t time_ns);
/* What is open runs on, but nothing more is known of it. */
void slices__end(struct slices *slices, uint64_t time_ns);
/* A slice beside all others: nothing was recorded. After slices__end(). */
void slices__gap(struct slices *slices, uint64_t start_ns, uint64_t end_ns, uint8_t reason);

#endif
