/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Calls of functions of -also: they are logged and never trigger. They have latches of their own,
 * so that they do not use up the depth of the trigger's latches.
 */
#ifndef MTBPF_ALSO_BPF_H
#define MTBPF_ALSO_BPF_H

#include "calls.bpf.h"
#include "fire.bpf.h"
#include "logs.bpf.h"

/* True if the entry probes are at the first instruction, where [sp] is the return address. */
const volatile bool also_at_entry;
/* True if on_also_return is attached to each returning instruction, not as a uretprobe. */
const volatile bool also_by_insn;
/* Like by_goroutine, for the functions of -also: their calls belong to goroutines, not threads. */
const volatile bool also_by_goroutine;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct latch);
} also_task_latches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct latch);
} also_lru_latches SEC(".maps");

/* Like entry_log, indexed by the number of the call. */
struct log_of_entries also_log SEC(".maps");

/* The number of the latest call. */
__u64 last_also;

static __always_inline struct latch *also_task_latch(void)
{
	return latch_of_task(&also_task_latches);
}

static __always_inline struct latch *also_lru_latch(const struct pt_regs *ctx)
{
	return latch_of_key(&also_lru_latches, latch_key(ctx, also_by_goroutine));
}

/* Stores the goroutine that the call belongs to; 0: the call belongs to the thread. */
static __always_inline void note_goroutine(struct mt_entry *entry, const struct pt_regs *ctx)
{
	entry->goroutine = also_by_goroutine ? goroutine_of(ctx) : 0;
	if (also_by_goroutine)
		entry->goid = goid_of(ctx->r14);
}

/*
 * Logs the end of a call. If newer calls have overwritten the call's entry, the end gets a new
 * entry.
 */
static __always_inline void close_also(const struct pt_regs *ctx, const struct open_call *call,
				       u32 kind, u64 now, u64 returns_to)
{
	u64 sequence = call->sequence;
	struct mt_entry *entry;

	if (is_frozen())
		return;
	if (last_also - sequence >= MT_ENTRY_LOG)
		sequence = __sync_fetch_and_add(&last_also, 1) + 1;
	entry = begin_entry(&also_log, sequence, call->ip);
	if (!entry)
		return;
	if (!also_by_goroutine && (returns_to || sequence != call->sequence))
		entry->returns_to = returns_to;
	entry->end_ns = now > call->entry_ns ? now : call->entry_ns;
	entry->kind = kind;
	note_goroutine(entry, ctx);
	end_write(&entry->start_ns, call->entry_ns);
}

/* Closes calls that were left without a return: a new call uses their place on the stack. */
static __always_inline void leave_also(const struct pt_regs *ctx, struct latch *latch, u64 sp,
				       u64 now)
{
	for (int i = 0; i < MT_CALL_DEPTH; i++) {
		struct open_call *call = innermost_call(latch);

		if (!call || call->sp > sp)
			break;
		close_also(ctx, call, MT_ENTRY_LEFT, now, 0);
		latch->depth--;
	}
}

/*
 * If a Go function's frame does not fit, the stack is moved and the function starts again
 * (src/runtime/asm_amd64.s: morestack): both starts are one call. Removes the first start from the
 * latch, and returns the number of its call; 0 for a new call.
 */
static __always_inline u64 begun_again(struct latch *latch, const struct open_call *call)
{
	const struct open_call *last = also_by_goroutine ? innermost_call(latch) : NULL;

	if (!last || last->sp != call->sp || last->ip != call->ip ||
	    last_also - last->sequence >= MT_ENTRY_LOG)
		return 0;
	latch->depth--;
	return last->sequence;
}

static __always_inline int enter_also(struct pt_regs *ctx, struct latch *latch)
{
	struct open_call call = {.entry_ns = bpf_ktime_get_ns(),
				 .sp = stack_place(ctx, also_by_goroutine),
				 .ip = ctx->ip};
	struct mt_entry *entry;
	u64 returns_to = 0;

	if (!latch)
		return 0;
	call.sequence = begun_again(latch, &call);
	leave_also(ctx, latch, call.sp, call.entry_ns);
	/* Without room for the call its return would not be found, so the call is not logged. */
	if (latch->depth >= MT_CALL_DEPTH)
		return 0;
	if (!call.sequence)
		call.sequence = __sync_fetch_and_add(&last_also, 1) + 1;
	push_call(latch, &call);
	if (also_at_entry)
		bpf_probe_read_user(&returns_to, sizeof(returns_to), (void *)ctx->sp);
	entry = is_frozen() ? NULL : begin_entry(&also_log, call.sequence, call.ip);
	if (!entry)
		return 0;
	entry->end_ns = 0;
	entry->kind = MT_ENTRY_CALL;
	/*
	 * For a goroutine: the thread, and the third argument (%cx in Go's ABIInternal), which is
	 * the reason for the wait if the function is runtime.gopark().
	 */
	entry->returns_to =
		also_by_goroutine ? (u64)entry->tid << 8 | (ctx->cx & 0xff) : returns_to;
	note_goroutine(entry, ctx);
	end_write(&entry->start_ns, call.entry_ns);
	return 0;
}

/*
 * Returns the address returned to; 0: it cannot be read. At a returning instruction, the address is
 * at [sp]; after the return, it is the ip.
 */
static __always_inline u64 returned_to(u64 sp, u64 ip)
{
	if (also_by_insn && bpf_probe_read_user(&ip, sizeof(ip), (void *)sp))
		return 0;
	return ip;
}

/*
 * True if a call with this stack place is open. Otherwise the probed instruction is a jump that
 * stays inside the function, or runs on another stack.
 */
static __always_inline bool has_also_at(struct latch *latch, u64 sp)
{
	for (u32 i = 0; i < MT_CALL_DEPTH && i < latch->depth; i++)
		if (latch->calls[i].sp == sp)
			return true;
	return false;
}

/* Like pop_call(), but logs calls inside the returning one as left without a return. */
static __always_inline int leave_by_return(struct pt_regs *ctx, struct latch *latch)
{
	u64 sp = ctx->sp, ip = ctx->ip, now = bpf_ktime_get_ns(), place, above;
	struct open_call last = {};

	/* Keeps clang from merging the loads of sp and ip into one, which the verifier rejects. */
	__asm__ volatile("" : "+r"(sp), "+r"(ip));
	place = stack_place(ctx, also_by_goroutine);
	above = also_by_insn ? place + 1 : place;
	if (!latch || (also_by_insn && !has_also_at(latch, place)))
		return 0;
	for (int i = 0; i < MT_CALL_DEPTH; i++) {
		struct open_call *call = innermost_call(latch);

		if (!call || call->sp >= above)
			break;
		if (last.entry_ns)
			close_also(ctx, &last, MT_ENTRY_LEFT, now, 0);
		last = *call;
		latch->depth--;
	}
	if (last.entry_ns)
		close_also(ctx, &last, MT_ENTRY_CALL, now, returned_to(sp, ip));
	return 0;
}

#endif
