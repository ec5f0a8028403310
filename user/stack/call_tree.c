// SPDX-License-Identifier: MIT
#include "stack/call_tree.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "decode/branch.h"
#include "decode/pt_note.h"
#include "kernel/syscalls.h"

/* Whole names, since call__name() hands out strings that nobody frees. */
static const char *gap_name(uint8_t reason)
{
	static const char *const names[] = {
		[GAP_NONE] = "[gap]",
		[GAP_OVERFLOW] = "[gap: overflow]",
		[GAP_BAD_PACKET] = "[gap: bad packet]",
		[GAP_UNMAPPED] = "[gap: unmapped]",
		[GAP_MISMATCH] = "[gap: mismatch]",
		[GAP_LOST] = "[gap: lost]",
		[GAP_32_BIT] = "[gap: 32-bit code]",
		[GAP_CALLER] = "[gap: caller unknown]",
		[GAP_BETWEEN] = "[gap]",
		[GAP_OUTSIDE] = "[gap: outside -start and -stop]",
		[GAP_FILTERED] = "[gap: outside -filter]",
	};

	return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : "[gap]";
}

static const char *off_name(uint8_t reason)
{
	static const char *const names[] = {
		[OFF_BLOCKED] = "[blocked]",   [OFF_PREEMPTED] = "[preempted]",
		[OFF_RUNNABLE] = "[runnable]", [OFF_THROTTLED] = "[throttled]",
		[OFF_STOLEN] = "[stolen]",
	};

	return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : "[off CPU]";
}

const char *call__name(const struct call *call)
{
	switch (call->kind) {
	case CALL_SYSCALL:
		return call->reason == SYSCALL_RECLAIM ? "[memory reclaim]" : "[syscall]";
	case CALL_UNTRACED:
		return pt_event__name(call->reason) ?: "[untraced]";
	case CALL_SWITCHED:
		return "[switched out]";
	case CALL_GAP:
		return gap_name(call->reason);
	case CALL_NOT_RECORDED:
		return "[not recorded]";
	case CALL_NO_CALLERS:
		return "[callers not recorded]";
	case CALL_OFF_CPU:
		return off_name(call->reason);
	case CALL_IN_KERNEL:
		if (!call->function)
			return "[kernel]";
		break;
	default:
		break;
	}
	if (!call->function || !call->function->name || !*call->function->name)
		return "[unknown]";
	return call->function->name;
}

const char *call__full_name(const struct call *call, char text[static CALL_NAME_SIZE])
{
	if (!call__has_own_name(call) || !pt_event__name(call->reason))
		return call__name(call);
	return pt_event__format(call->reason, call->entry_ip, text);
}

const char *left_by__name(enum left_by left_by)
{
	static const char *const names[] = {
		[LEFT_BY_THROW] = "throw",	     [LEFT_BY_PANIC] = "panic",
		[LEFT_BY_RAISE] = "raise",	     [LEFT_BY_LONGJMP] = "longjmp",
		[LEFT_BY_SIGLONGJMP] = "siglongjmp", [LEFT_BY_GOEXIT] = "goexit",
	};

	return left_by < sizeof(names) / sizeof(names[0]) ? names[left_by] : NULL;
}

const struct call *call_tree__reclaim(const struct call_tree *tree, const struct call *call)
{
	for (;; call = &tree->calls.v[call->parent]) {
		if (call->kind == CALL_SYSCALL && call->reason == SYSCALL_RECLAIM)
			return call;
		/* It calls no user code. */
		if ((call->function && call->kind != CALL_IN_KERNEL) ||
		    call->parent == CALL_NO_PARENT)
			return NULL;
	}
}

const struct done_by *call_tree__done_by(const struct call_tree *tree, const struct call *call)
{
	uint32_t index = (uint32_t)(call - tree->calls.v);
	size_t n = VEC_PARTITION_POINT(&tree->done_by, e, e->call < index);

	return n < tree->done_by.n && tree->done_by.v[n].call == index ? &tree->done_by.v[n] : NULL;
}

uint64_t interrupts_mark__until(const struct interrupts_mark *mark, uint64_t time_ns)
{
	if (time_ns <= mark->start_ns)
		return 0;
	if (time_ns >= mark->end_ns)
		return mark->ns;
	return (uint64_t)((unsigned __int128)mark->ns * (time_ns - mark->start_ns) /
			  (mark->end_ns - mark->start_ns));
}

int call_tree__add_interrupts(struct call_tree *tree, const struct interrupts_mark *mark)
{
	const size_t n = tree->interrupts.n;
	const uint64_t done_ns = n ? tree->interrupts.v[n - 1].end_ns : 0;
	struct interrupts_mark *out, rest = *mark;

	if (rest.end_ns <= rest.start_ns || rest.ns > rest.end_ns - rest.start_ns)
		return 0;
	if (rest.start_ns < done_ns)
		rest.start_ns = done_ns < rest.end_ns ? done_ns : rest.end_ns;
	rest.ns -= interrupts_mark__until(mark, rest.start_ns);
	if (rest.start_ns == rest.end_ns)
		return 0;
	out = VEC_PUSH(&tree->interrupts);
	if (!out)
		return -ENOMEM;
	*out = rest;
	return 0;
}

/* The object or event that a blocked thread waits for, in a call tree and in words. */

const struct waits_for *call_tree__waits_for(const struct call_tree *tree, const struct call *call)
{
	uint32_t index = (uint32_t)(call - tree->calls.v);
	size_t n = VEC_PARTITION_POINT(&tree->waits, e, e->call < index);

	return n < tree->waits.n && tree->waits.v[n].call == index ? &tree->waits.v[n] : NULL;
}

const char *waits_for__format(const struct waits_for *wait, char text[static WAITS_FOR_SIZE])
{
	const char *name = syscall__name(wait->syscall);
	char number[32];

	if (wait->text) {
		snprintf(text, WAITS_FOR_SIZE, "%s", wait->text);
		return text;
	}
	snprintf(number, sizeof(number), "system call %d", wait->syscall);
	if (!name)
		name = number;
	if (wait->owner)
		snprintf(text, WAITS_FOR_SIZE, "%s held by %s (%d)", name, wait->owner_comm,
			 (int)wait->owner);
	else if (wait->file)
		snprintf(text, WAITS_FOR_SIZE, "%s of %.128s (fd %d)", name, wait->file, wait->fd);
	else if (wait->fd >= 0)
		snprintf(text, WAITS_FOR_SIZE, "%s of fd %d", name, wait->fd);
	else
		snprintf(text, WAITS_FOR_SIZE, "%s", name);
	return text;
}
