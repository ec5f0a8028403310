/* SPDX-License-Identifier: MIT */
/*
 * What decode hands to stack: arrays of one thread's transfers of control, in time order, with
 * other things that are known of the thread as entries among them.
 */
#ifndef MTBPF_DECODE_BRANCH_H
#define MTBPF_DECODE_BRANCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum branch_kind {
	BRANCH_CALL,	    /* near call */
	BRANCH_RETURN,	    /* near return */
	BRANCH_JUMP,	    /* unconditional near jump */
	BRANCH_COND,	    /* conditional jump, taken */
	BRANCH_ENTER,	    /* the kernel is traced: into it, or into a handler within it. By the
			       instruction at `from` (syscall, int n), or, where len is 0, before it:
			       interrupt, exception */
	BRANCH_LEAVE,	    /* back from there, by an iret, sysret or sysexit at `from` */
	BRANCH_BEGIN,	    /* tracing begins, or goes on, at `to`; from is 0 */
	BRANCH_END_SYSCALL, /* left user code by the syscall instruction at `from`; to is 0 */
	BRANCH_END_ASYNC,   /* interrupt, fault, signal or trap before the instruction at `from` */
	BRANCH_END,	    /* tracing stopped at `from`: the freeze, or the end of the data */
	BRANCH_GAP,	    /* the trace is broken here: enum gap_reason; from, to: where, or 0 */
};

/*
 * Beside enum branch_kind: entries that are no branch. n_insns and n_branches of the branches do
 * not depend on them.
 */
enum entry_kind {
	/*
	 * The thread's code_map shows the code of time_ns from here on: what stands before the
	 * entry is of the code as it was. The next branch counts n_insns instructions up to here.
	 */
	ENTRY_MAP = BRANCH_GAP + 1,
	ENTRY_NOTE,  /* a struct pt_note: branch__note() */
	ENTRY_SPEED, /* a struct speed: branch__speed() */
	ENTRY_KINDS,
};

enum gap_reason {
	GAP_NONE,
	GAP_OVERFLOW,	/* the CPU's buffer overflowed (OVF) */
	GAP_BAD_PACKET, /* the bytes are no packet */
	GAP_UNMAPPED,	/* no code is known at the address */
	GAP_MISMATCH,	/* packets and code disagree */
	GAP_LOST,	/* capture says that it lost data */
	GAP_32_BIT,	/* the thread ran 32-bit code, which is not decoded */
	GAP_CALLER,	/* a return to a caller that is not known: it called in a gap */
	GAP_BETWEEN,	/* nothing was recorded between two snapshots: no loss */
	GAP_OUTSIDE,	/* of -start and -stop: no loss either */
	GAP_FILTERED,	/* outside of -filter: nor is this */
};

struct branch {
	uint64_t time_ns; /* CLOCK_MONOTONIC (soft), perf's clock (pt) */
	uint64_t from;	  /* address of the branching instruction */
	uint64_t to;	  /* where it went */
	uint32_t n_insns; /* instructions executed since the previous branch, this one included */
	/* Near branches taken since the previous one, this included: more than 1 where decoding
	 * leaves out jumps within a function. */
	uint32_t n_branches;
	uint8_t kind; /* enum branch_kind, or enum entry_kind */
	/* Length of the instruction at from; 0 where it did not execute. Of a call, 0: unknown. */
	uint8_t len;
	uint8_t reason; /* enum gap_reason */
	uint8_t packet; /* decode's own */
	int32_t cpu;	/* of entries */
};

/* A part of an array of branches, or all of it. */
struct branch_batch {
	struct branch *v;
	size_t n;
};

static inline bool branch__is_entry(const struct branch *b)
{
	return b->kind > BRANCH_GAP;
}

/*
 * Of calls: where their RET goes, and how many bytes behind that it may go as well, where nobody
 * says how long the instruction is: from FF /2 with a register to one with a segment, REX, SIB and
 * 32 bits.
 */
#define CALL_MIN_LEN 2
#define CALL_MAX_LEN 9

static inline uint64_t branch__return_ip(const struct branch *b)
{
	return b->from + (b->len ? b->len : CALL_MIN_LEN);
}

static inline uint8_t branch__return_slack(const struct branch *b)
{
	return b->len ? 0 : CALL_MAX_LEN - CALL_MIN_LEN;
}

/*
 * Takes the next n branches and entries of a thread, and may change them. The code_map shows the
 * code as it is at each of them. Non-zero stops the decoder, which returns it.
 */
typedef int (*branches_fn)(void *ctx, struct branch *v, size_t n);

const char *branch_kind__name(enum branch_kind kind);
const char *gap_reason__name(enum gap_reason reason);

#endif
