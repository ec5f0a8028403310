/* SPDX-License-Identifier: MIT */
/*
 * The interface between decode and stack: arrays of one thread's branches in time order. Other
 * facts about the thread are entries among them.
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
	BRANCH_ENTER,	    /* entry into the kernel, or a handler within it (if the kernel is
			       traced): by the instruction at `from` (syscall, int n) or, if len is
			       0, an interrupt or exception before it */
	BRANCH_LEAVE,	    /* return from such an entry, by iret, sysret or sysexit at `from` */
	BRANCH_BEGIN,	    /* tracing begins, or goes on, at `to`; from is 0 */
	BRANCH_END_SYSCALL, /* left traced code by the syscall, sysret, iret or VM entry at `from`;
			       to is 0 */
	BRANCH_END_ASYNC,   /* interrupt, fault, signal or trap before the instruction at `from` */
	BRANCH_END, /* tracing stopped at `from`: freeze, end of the data, int3, end of a filter's
		       range */
	BRANCH_GAP, /* the trace is broken here: enum gap_reason; from, to: where, or 0 */
};

/*
 * Kinds of entries that are not branches. They do not affect n_insns and n_branches of the
 * branches.
 */
enum entry_kind {
	/*
	 * From here on the thread's code_map shows the code as of time_ns; earlier entries refer to
	 * the code before. n_insns: how many of the instructions that the next branch counts ran
	 * before this entry.
	 */
	ENTRY_MAP = BRANCH_GAP + 1,
	ENTRY_NOTE,  /* a struct pt_note: branch__note() */
	ENTRY_SPEED, /* a struct speed: branch__speed() */
	ENTRY_KINDS,
};

enum gap_reason {
	GAP_NONE,
	GAP_OVERFLOW,	/* the CPU's buffer overflowed (OVF) */
	GAP_BAD_PACKET, /* the bytes are not a valid packet */
	GAP_UNMAPPED,	/* no code is known at the address */
	GAP_MISMATCH,	/* packets and code disagree */
	GAP_LOST,	/* capture says that it lost data */
	GAP_32_BIT,	/* the thread ran 32-bit code, which is not decoded */
	GAP_CALLER,	/* a return to an unknown caller, which called during a gap */
	GAP_BETWEEN,	/* between two snapshots, where nothing was meant to be recorded */
	GAP_OUTSIDE,	/* outside of -start and -stop */
	GAP_FILTERED,	/* outside of -filter */
};

struct branch {
	uint64_t time_ns; /* CLOCK_MONOTONIC (soft), perf's clock (pt) */
	uint64_t from;	  /* address of the branching instruction */
	uint64_t to;	  /* the branch's target */
	uint32_t n_insns; /* instructions since the previous branch, including this one */
	/*
	 * Near branches since the previous one, including this one. More than 1 if jumps within the
	 * function were left out.
	 */
	uint32_t n_branches;
	uint8_t kind; /* enum branch_kind, or enum entry_kind */
	/*
	 * Length of the instruction at from; 0: it did not execute, or the length of a call is
	 * unknown.
	 */
	uint8_t len;
	uint8_t reason; /* BRANCH_GAP: enum gap_reason; ENTRY_NOTE: enum pt_note_kind */
	uint8_t packet; /* used within decode only */
	int32_t cpu;	/* ENTRY_NOTE, ENTRY_SPEED: the ring's CPU */
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
 * A call's return address. If the length of the instruction is unknown, the address lies between
 * CALL_MIN_LEN (FF /2 with a register) and CALL_MAX_LEN bytes (with a segment prefix, REX, SIB and
 * a displacement of 32 bits) after `from`.
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

/* The speed of a thread in a stretch. */
struct speed {
	uint64_t begin_ns, end_ns;
	uint64_t traced_ns; /* time in traced code; the rest was in the kernel, off the CPU, or a
			       gap */
	uint64_t insns;
	int cpu; /* the ring's CPU */
};

/* Shorter stretches are combined. */
#define SPEED_MIN_NS 20000

/* Convert a struct speed to an entry among branches, and back. */
static inline struct branch speed__entry(const struct speed *speed)
{
	return (struct branch){.time_ns = speed->end_ns,
			       .from = speed->begin_ns,
			       .to = speed->traced_ns,
			       .n_insns = (uint32_t)speed->insns,
			       .n_branches = (uint32_t)(speed->insns >> 32),
			       .kind = ENTRY_SPEED,
			       .cpu = speed->cpu};
}

static inline struct speed branch__speed(const struct branch *entry)
{
	return (struct speed){.begin_ns = entry->from,
			      .end_ns = entry->time_ns,
			      .traced_ns = entry->to,
			      .insns = entry->n_insns | (uint64_t)entry->n_branches << 32,
			      .cpu = entry->cpu};
}

/*
 * Receives the thread's next n branches and entries, and may modify them. The code_map shows the
 * code at each of them. The decoder stops at a non-zero result and returns it.
 */
typedef int (*branches_fn)(void *ctx, struct branch *v, size_t n);

const char *branch_kind__name(enum branch_kind kind);
const char *gap_reason__name(enum gap_reason reason);

#endif
