// SPDX-License-Identifier: MIT
#include "perf/perf_flags.h"

#include <string.h>

#include "decode/branch.h"
#include "kernel/kernel.h"

/* "syscall" and "int n" alike. */
#define SYSCALL_LEN 2

struct word {
	const char *text;
	uint32_t flags;
};

/* The parts of two-word flags follow each other in the text: "hw" and "int", "tx" and "abrt". */
static const struct word known[] = {
	{"call", PERF_IS_BRANCH | PERF_IS_CALL},
	{"return", PERF_IS_BRANCH | PERF_IS_RETURN},
	{"jmp", PERF_IS_BRANCH},
	{"jcc", PERF_IS_BRANCH | PERF_IS_CONDITIONAL},
	{"int", PERF_IS_BRANCH | PERF_IS_CALL | PERF_IS_INTERRUPT},
	{"iret", PERF_IS_BRANCH | PERF_IS_RETURN | PERF_IS_INTERRUPT},
	{"syscall", PERF_IS_BRANCH | PERF_IS_CALL | PERF_IS_SYSCALL},
	{"sysret", PERF_IS_BRANCH | PERF_IS_RETURN | PERF_IS_SYSCALL},
	{"async", PERF_IS_BRANCH | PERF_IS_ASYNC},
	{"hw", PERF_IS_BRANCH | PERF_IS_ASYNC},
	{"tx", PERF_IS_BRANCH},
	{"abrt", PERF_IS_BRANCH | PERF_IS_ABORT},
	{"tr", PERF_IS_BRANCH},
	{"strt", PERF_IS_BRANCH | PERF_IS_BEGIN},
	{"end", PERF_IS_BRANCH | PERF_IS_END},
	{"vmentry", PERF_IS_BRANCH | PERF_IS_CALL | PERF_IS_VMENTRY},
	{"vmexit", PERF_IS_BRANCH | PERF_IS_CALL | PERF_IS_VMEXIT},
	{"miss", PERF_IS_BRANCH},
	{"not_taken", PERF_IS_BRANCH | PERF_IS_NOT_TAKEN},
};

/* PERF_IP_FLAG_CHARS: a letter a bit. */
static const char letters[] = "bcrosyiABExghDtmn";

static uint32_t find_letters(const char *text, size_t len)
{
	uint32_t flags = 0;

	if (!len || text[0] != letters[0])
		return 0;
	for (size_t i = 0; i < len; i++) {
		const char *at = text[i] ? strchr(letters, text[i]) : NULL;

		if (!at)
			return 0;
		flags |= 1u << (at - letters);
	}
	return flags;
}

bool perf_words__are_letters(const char *text, size_t len)
{
	return find_letters(text, len) != 0;
}

static void take_word(struct perf_words *words, const char *text, size_t len)
{
	uint32_t flags;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strlen(known[i].text) != len || memcmp(known[i].text, text, len))
			continue;
		words->flags |= known[i].flags;
		return;
	}
	flags = find_letters(text, len);
	words->flags |= flags;
	if (!flags)
		words->has_unknown = true;
}

/*
 * Takes the machine's state after a branch: in a transaction, interrupts off (D), or switched (t).
 */
static void take_state(struct perf_words *words, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == 'x')
			words->flags |= PERF_IN_TRANSACTION;
		else if (text[i] != 'D' && text[i] != 't')
			words->has_unknown = true;
	}
}

static bool is_separator(char c)
{
	return c == ' ' || c == '/' || c == ',' || c == '(' || c == ')';
}

void perf_words__parse(struct perf_words *words, const char *text, size_t len)
{
	static const char missed[] = "br miss";
	size_t at = 0;

	*words = (struct perf_words){0};
	/* 6.14 only. Alone, the two letters are those of a return. */
	if (len >= strlen(missed) && !memcmp(text, missed, strlen(missed)))
		at = strlen("br ");
	while (at < len) {
		size_t start = at;
		bool is_state = at && text[at - 1] == '(';

		while (at < len && !is_separator(text[at]))
			at++;
		if (at > start && is_state)
			take_state(words, text + start, at - start);
		else if (at > start)
			take_word(words, text + start, at - start);
		at++;
	}
}

static uint8_t kind_of_end(uint32_t flags)
{
	const uint32_t not_how = PERF_IS_BRANCH | PERF_IS_END | PERF_IN_TRANSACTION;

	/* perf before 6.2 (2023) prints no other flag for page faults and interrupts. */
	if (flags & PERF_IS_ASYNC || (flags & PERF_IS_END && !(flags & ~not_how)))
		return BRANCH_END_ASYNC;
	if (flags & PERF_IS_CALL && flags & (PERF_IS_SYSCALL | PERF_IS_INTERRUPT))
		return BRANCH_END_SYSCALL;
	return BRANCH_END;
}

uint8_t perf_flags__kind(uint32_t flags, uint64_t from, uint64_t to)
{
	if (flags & PERF_IS_BEGIN || (!from && to))
		return BRANCH_BEGIN;
	if (flags & PERF_IS_END || !to)
		return kind_of_end(flags);
	if (flags & (PERF_IS_ASYNC | PERF_IS_SYSCALL | PERF_IS_INTERRUPT)) {
		/* Into the kernel, out of it, or into a signal handler. */
		if (flags & PERF_IS_ASYNC)
			return address__is_kernel(to) ? BRANCH_ENTER : BRANCH_JUMP;
		if (flags & PERF_IS_CALL)
			return BRANCH_ENTER;
		return address__is_kernel(from) ? BRANCH_LEAVE : BRANCH_JUMP;
	}
	/* An abort returns to the start of its transaction. A guest has its own stack. */
	if (flags & (PERF_IS_ABORT | PERF_IS_VMENTRY | PERF_IS_VMEXIT))
		return BRANCH_JUMP;
	if (flags & PERF_IS_CALL)
		return BRANCH_CALL;
	if (flags & PERF_IS_RETURN)
		return BRANCH_RETURN;
	return flags & PERF_IS_CONDITIONAL ? BRANCH_COND : BRANCH_JUMP;
}

uint8_t perf_flags__insn_len(uint8_t kind, uint32_t flags)
{
	bool is_syscall =
		kind == BRANCH_END_SYSCALL || (kind == BRANCH_ENTER && !(flags & PERF_IS_ASYNC));

	return is_syscall ? SYSCALL_LEN : 0;
}
