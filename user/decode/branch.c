// SPDX-License-Identifier: MIT
#include "decode/branch.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *branch_kind__name(enum branch_kind kind)
{
	static const char *const names[] = {
		[BRANCH_CALL] = "call",
		[BRANCH_RETURN] = "return",
		[BRANCH_JUMP] = "jmp",
		[BRANCH_COND] = "jcc",
		[BRANCH_ENTER] = "enter",
		[BRANCH_LEAVE] = "leave",
		[BRANCH_BEGIN] = "begin",
		[BRANCH_END_SYSCALL] = "end-syscall",
		[BRANCH_END_ASYNC] = "end-async",
		[BRANCH_END] = "end",
		[BRANCH_GAP] = "gap",
	};

	return (size_t)kind < COUNT(names) ? names[kind] : "?";
}

const char *gap_reason__name(enum gap_reason reason)
{
	static const char *const names[] = {
		[GAP_NONE] = "none",
		[GAP_OVERFLOW] = "overflow",
		[GAP_BAD_PACKET] = "bad packet",
		[GAP_UNMAPPED] = "unmapped",
		[GAP_MISMATCH] = "mismatch",
		[GAP_LOST] = "lost",
		[GAP_32_BIT] = "32-bit code",
		[GAP_BETWEEN] = "between snapshots",
		[GAP_OUTSIDE] = "outside -start and -stop",
		[GAP_FILTERED] = "outside -filter",
	};

	return (size_t)reason < COUNT(names) ? names[reason] : "?";
}
