/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Matching returns with entries. A return probe never runs for a call that longjmp, an exception
 * or a stack switch left, so entries are not simply popped: the stack pointer says which of them
 * are over. The stack grows down, and the entry probe runs before the function lowers it further,
 * so with `sp` at the entry probe, and with sp at the return (behind the return address):
 *
 *   a call whose sp is at or below that of a new entry has been left: its frame was reused;
 *   a call whose sp is below that of a return is the returning one, or was called by it.
 */
#ifndef MTBPF_CALLS_BPF_H
#define MTBPF_CALLS_BPF_H

#include "latch.bpf.h"

/* The innermost open call, or NULL; in range for the verifier too. */
static __always_inline struct open_call *innermost_call(struct latch *latch)
{
	u32 depth = latch->depth;

	if (!depth || depth > MT_CALL_DEPTH)
		return NULL;
	return &latch->calls[(depth - 1) & (MT_CALL_DEPTH - 1)];
}

/*
 * When too many are open the new one is not recorded: the outer calls contain it, and its return
 * will find none that it could be mistaken for. False then.
 */
static __always_inline bool push_call(struct latch *latch, const struct open_call *entry)
{
	struct open_call *call;

	for (int i = 0; i < MT_CALL_DEPTH; i++) {
		call = innermost_call(latch);
		if (!call || call->sp > entry->sp)
			break;
		latch->depth--;
	}
	if (latch->depth >= MT_CALL_DEPTH)
		return false;
	latch->depth++;
	call = innermost_call(latch);
	if (!call)
		return false;
	*call = *entry;
	return true;
}

/* Pops the call that returns, and those inside it that never did. False where it has no entry. */
static __always_inline bool pop_call(struct latch *latch, u64 sp, struct open_call *returning)
{
	bool found = false;

	for (int i = 0; i < MT_CALL_DEPTH; i++) {
		struct open_call *call = innermost_call(latch);

		if (!call || call->sp >= sp)
			break;
		*returning = *call;
		found = true;
		latch->depth--;
	}
	return found;
}

/*
 * The same where the instruction that returns is probed: it has the call's own sp, and what has
 * another is none of ours (a jump that does not leave, or another stack). What lies further in is
 * over.
 */
static __always_inline bool pop_call_at(struct latch *latch, u64 sp, struct open_call *returning)
{
	u32 depth = latch->depth;

	for (int i = 0; i < MT_CALL_DEPTH; i++, depth--) {
		if (!depth || depth > MT_CALL_DEPTH)
			return false;
		*returning = latch->calls[(depth - 1) & (MT_CALL_DEPTH - 1)];
		if (returning->sp == sp) {
			latch->depth = depth - 1;
			return true;
		}
	}
	return false;
}

#endif
