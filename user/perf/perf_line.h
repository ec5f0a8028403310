/* SPDX-License-Identifier: MIT */
/* Parses lines printed by `perf script`, of branches and of samples. */
#ifndef MTBPF_PERF_PERF_LINE_H
#define MTBPF_PERF_PERF_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/symbols/named_image.h"

enum perf_line_kind {
	PERF_LINE_BRANCH, /* a branch, parsed only up to its first address */
	PERF_LINE_ERROR,  /* "instruction trace error ..." */
	PERF_LINE_EVENT,  /* another event, with its thread and time */
	PERF_LINE_OTHER,  /* a frame, a comment, anything */
};

/* Text within the line. */
struct perf_span {
	const char *text;
	size_t len;
};

struct perf_line {
	uint64_t time_ns;
	pid_t pid, tid; /* pid: the tid if the line has only that */
	bool has_pid;	/* false: the text lacks ids of processes */
	struct perf_span comm, flags;
	uint64_t from; /* of a branch: its address */
	struct perf_span rest;
	struct perf_span event; /* its name, or empty */
	uint64_t period;	/* of the event; 0: not printed */
	struct perf_span body;	/* what follows the event */
	bool has_time;		/* of an error: old versions of perf print no time */
	int type, code;		/* of an error: perf's numbers */
};

/*
 * Parses one line (without its newline) up to the first address. A branch's line without an address
 * is an event. The spans point into `text`; a branch's `rest` begins after the address.
 */
enum perf_line_kind perf_line__parse(struct perf_line *line, const char *text, size_t len);

/*
 * Parses "symbol+0x12 (module)", where each part may be missing, into *place; the caller sets its
 * ip. Returns the number of bytes parsed; an arrow or other text may follow.
 */
size_t perf_place__parse(struct named_place *place, const char *text, size_t len);

/* Parses the arrow and the address after it, and moves *rest past them. False without them. */
bool perf_line__parse_target(struct perf_span *rest, uint64_t *to);

/* Parses one line of a stack, or the place of a sample without a stack. False for other text. */
bool perf_line__parse_frame(struct perf_span text, uint64_t *ip, struct perf_span *place);

/* A context switch: of `perf script --show-switch-events`, or the event sched:sched_switch. */
struct perf_switch {
	bool is_in;	   /* true: the line's thread runs now; false: it leaves its CPU */
	bool is_preempted; /* the thread was still runnable */
	pid_t next;	   /* the thread that runs instead; 0: none, or unknown */
};

/* False if the event is not a context switch. */
bool perf_line__parse_switch(const struct perf_line *line, struct perf_switch *out);

/* The fields that may follow the places. */
struct perf_extra {
	uint32_t n_insns; /* instructions since the last branch with this field; 0: not known */
	uint8_t insn_len; /* of the branch's instruction; 0: not known */
};

void perf_extra__parse(struct perf_extra *extra, const char *text, size_t len);

/* perf's flags for each branch, as bits and as words. */

/* The values of tools/perf/util/event.h: PERF_IP_FLAG_... */
enum perf_flag {
	PERF_IS_BRANCH = 1 << 0,
	PERF_IS_CALL = 1 << 1,
	PERF_IS_RETURN = 1 << 2,
	PERF_IS_CONDITIONAL = 1 << 3,
	PERF_IS_SYSCALL = 1 << 4, /* or the return from one */
	PERF_IS_ASYNC = 1 << 5,
	PERF_IS_INTERRUPT = 1 << 6, /* or the return from one */
	PERF_IS_ABORT = 1 << 7,	    /* of a transaction */
	PERF_IS_BEGIN = 1 << 8,	    /* of the trace, which goes on here */
	PERF_IS_END = 1 << 9,
	PERF_IN_TRANSACTION = 1 << 10,
	PERF_IS_VMENTRY = 1 << 11,
	PERF_IS_VMEXIT = 1 << 12,
	PERF_IS_NOT_TAKEN = 1 << 16,
};

struct perf_words {
	uint32_t flags;
	bool has_unknown; /* words that mean nothing to us were among them */
};

/*
 * Parses the words of tools/perf/util/trace-event-scripting.c of any version: "tr end  hw int (x)",
 * "jcc/miss,not_taken/", or the letters ("bcE") that perf before 4.11 prints for combinations
 * without a word.
 */
void perf_words__parse(struct perf_words *words, const char *text, size_t len);
/* True if the whole text consists of flag letters and begins with "b". */
bool perf_words__are_letters(const char *text, size_t len);

/* Returns the enum branch_kind of a branch with these flags. from, to: 0 if unknown. */
uint8_t perf_flags__kind(uint32_t flags, uint64_t from, uint64_t to);
/* The length of the branch's instruction if the kind implies it, as for a syscall; otherwise 0. */
uint8_t perf_flags__insn_len(uint8_t kind, uint32_t flags);

#endif
