/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Matches returns with entries. A call that was left by longjmp, an exception or a stack switch
 * never reaches its return probe, so the stack pointer decides which open calls are over. The stack
 * grows down, and the entry probe runs before the function lowers sp. Compare sp at the entry probe
 * with sp at the return (after the return address is popped):
 *
 *   a call whose sp is at or below that of a new entry was left: its frame is reused;
 *   a call whose sp is below that of a return is the returning call, or was called by it.
 */
#ifndef MTBPF_CALLS_BPF_H
#define MTBPF_CALLS_BPF_H

#include "latch.bpf.h"

/* The innermost open call, or NULL. */
static __always_inline struct open_call *innermost_call(struct latch *latch)
{
	u32 depth = latch->depth;

	if (!depth || depth > MT_CALL_DEPTH)
		return NULL;
	return &latch->calls[(depth - 1) & (MT_CALL_DEPTH - 1)];
}

/*
 * False if too many calls are open. The new call is then not stored, and its return matches none of
 * the outer calls, which contain it.
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

/*
 * Pops the returning call and the calls inside it that never returned. False if no such call is
 * open.
 */
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
 * Like pop_call(), for a probed returning instruction: there, sp equals the call's own sp. If no
 * call has this sp, the instruction is a jump that stays inside the function, or runs on another
 * stack. Calls inside the returning one are over, too.
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
