// SPDX-License-Identifier: MIT
#include "trace/read/fxt_call.h"

#include <string.h>

#include "decode/branch.h"
#include "decode/pt_note.h"
#include "stack/stack.h"

void fxt_call__set_kind(struct call *call, const struct fxt_read *read)
{
	static const struct {
		const char *category, *name;
		enum call_kind kind;
		uint8_t reason;
	} kinds[] = {
		{"kernel", "[syscall]", CALL_SYSCALL, 0},
		{"kernel", "[memory reclaim]", CALL_SYSCALL, SYSCALL_RECLAIM},
		{"kernel", "[untraced]", CALL_UNTRACED, 0},
		{"kernel", "[kernel]", CALL_IN_KERNEL, 0},
		{"switch", NULL, CALL_SWITCHED, 0},
		{"off-cpu", "[blocked]", CALL_OFF_CPU, OFF_BLOCKED},
		{"off-cpu", "[preempted]", CALL_OFF_CPU, OFF_PREEMPTED},
		{"off-cpu", "[runnable]", CALL_OFF_CPU, OFF_RUNNABLE},
		{"off-cpu", "[throttled]", CALL_OFF_CPU, OFF_THROTTLED},
		{"off-cpu", "[stolen]", CALL_OFF_CPU, OFF_STOLEN},
		{"gap", "[gap]", CALL_GAP, GAP_BETWEEN},
		{"gap", "[gap: overflow]", CALL_GAP, GAP_OVERFLOW},
		{"gap", "[gap: outside -start and -stop]", CALL_GAP, GAP_OUTSIDE},
		{"gap", "[not recorded]", CALL_NOT_RECORDED, 0},
		{"gap", "[callers not recorded]", CALL_NO_CALLERS, 0},
		{"gap", "[gap: outside -filter]", CALL_GAP, GAP_FILTERED},
		{"gap", NULL, CALL_GAP, GAP_LOST},
		{"inlined", NULL, CALL_INLINED, 0},
		{"signal", NULL, CALL_SIGNAL, 0},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].category, read->category) ||
		    (kinds[i].name && strcmp(kinds[i].name, read->name)))
			continue;
		call->kind = kinds[i].kind;
		call->reason = kinds[i].reason;
		return;
	}
	if (strcmp(read->category, "kernel") || !pt_event__parse(read->name))
		return;
	call->kind = CALL_UNTRACED;
	call->reason = pt_event__parse(read->name);
}

uint8_t fxt_call__flags(const struct fxt_read *read)
{
	static const struct {
		const char *key;
		enum call_flags flag;
	} names[] = {
		{"inferred_start", CALL_INFERRED_START},
		{"inferred_end", CALL_INFERRED_END},
		{"by_jump", CALL_BY_JUMP},
		{"cut_short", CALL_CUT_SHORT},
		{"inferred", CALL_INFERRED},
		{"sampled", CALL_SAMPLED},
	};
	uint8_t flags = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (fxt_read__arg(read, names[i].key))
			flags |= (uint8_t)names[i].flag;
	}
	return flags;
}
