/* SPDX-License-Identifier: MIT */
/* perf's flags for each branch, as bits and as words. */
#ifndef MTBPF_PERF_PERF_FLAGS_H
#define MTBPF_PERF_PERF_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values of <perf/perf_dlfilter.h>, and of tools/perf/util/event.h for the later ones. */
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
/* True if the text begins like flags: with one of those letters or words. */
bool perf_words__are_letters(const char *text, size_t len);

/* The enum branch_kind of such a branch. `from` and `to` are its addresses, 0 if unknown. */
uint8_t perf_flags__kind(uint32_t flags, uint64_t from, uint64_t to);
/* The length of its instruction where the kind tells it: of a syscall. */
uint8_t perf_flags__insn_len(uint8_t kind, uint32_t flags);

#endif
