/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Logs the goroutine that makes another one ready, at runtime.ready(gp, ...): the first argument is
 * in %rax. Only if that one waits within a call of the trigger: other wake-ups cost the probe and
 * two lookups.
 */
#ifndef MTBPF_READY_BPF_H
#define MTBPF_READY_BPF_H

#include "also.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MT_READY_LOG);
	__type(key, u32);
	__type(value, struct mt_ready);
} ready_log SEC(".maps");

__u64 n_ready;	    /* in the log, all that ever were */
__u64 n_ready_hits; /* of the probe */

/* Both are the goroutine's: in a call of the trigger it is in one of runtime.gopark(), too. */
static __always_inline bool waits_in_call(u64 g)
{
	const u32 key = goroutine_key(g);
	const struct latch *calls = bpf_map_lookup_elem(&lru_latches, &key);
	const struct latch *parks =
		calls && calls->depth ? bpf_map_lookup_elem(&also_lru_latches, &key) : NULL;

	return parks && parks->depth;
}

/*
 * It runs on the stack that a thread has for Go's scheduler: its g, the first member of the
 * thread's m, is in %r14. The goroutine is the current one of that m; there is none if the
 * scheduler itself does it, or a timer. The goroutine's own m is a check that the offsets are
 * right.
 */
static __always_inline u64 current_goid(const struct pt_regs *ctx)
{
	u64 m = read_user_word(ctx->r14 + go_offsets.m), curg;

	if (!m)
		return MT_GOID_UNKNOWN;
	if (read_user_word(m) != ctx->r14)
		return goid_of(ctx->r14) ?: MT_GOID_UNKNOWN;
	curg = read_user_word(m + go_offsets.curg);
	if (!curg)
		return 0;
	return read_user_word(curg + go_offsets.m) == m ? goid_of(curg) ?: MT_GOID_UNKNOWN
							: MT_GOID_UNKNOWN;
}

/* At the entry of a function frame pointers lead past its caller, whose address is at [sp]. */
static __always_inline u32 walk_from_entry(struct pt_regs *ctx, struct mt_ready *ready)
{
	long bytes;

	ready->stack[0] = ctx->ip;
	ready->stack[1] = read_user_word(ctx->sp);
	bytes = bpf_get_stack(ctx, &ready->stack[2], sizeof(ready->stack) - 16,
			      BPF_F_USER_STACK | 1);
	return bytes > 0 ? 2 + (u32)bytes / 8 : 2;
}

static __always_inline void make_ready(struct pt_regs *ctx)
{
	struct mt_ready *ready;
	u64 pid_tgid;
	u32 key;

	__sync_fetch_and_add(&n_ready_hits, 1);
	if (is_frozen() || !waits_in_call(ctx->ax))
		return;
	key = __sync_fetch_and_add(&n_ready, 1) & (MT_READY_LOG - 1);
	ready = bpf_map_lookup_elem(&ready_log, &key);
	if (!ready)
		return;
	pid_tgid = current_pid_tgid();
	begin_write(&ready->time_ns);
	ready->tid = (u32)pid_tgid;
	ready->tgid = pid_tgid >> 32;
	ready->goroutine = goroutine_at(ctx->ax);
	ready->cpu = bpf_get_smp_processor_id();
	ready->goid = current_goid(ctx);
	ready->depth = walk_from_entry(ctx, ready);
	end_write(&ready->time_ns, bpf_ktime_get_ns());
}

#endif
