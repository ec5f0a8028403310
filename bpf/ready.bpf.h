/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * At runtime.ready(gp, ...), logs who makes the goroutine gp ready; gp is in %rax. Only goroutines
 * that wait in a call of the trigger's function are logged: for others the probe does two lookups.
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

__u64 n_ready;	    /* entries ever written to the log */
__u64 n_ready_hits; /* hits of the probe */

/* True if the goroutine is in runtime.gopark(), inside a call of the trigger's function. */
static __always_inline bool waits_in_call(u64 g)
{
	const u32 key = goroutine_key(g);
	const struct latch *calls = bpf_map_lookup_elem(&lru_latches, &key);
	const struct latch *parks =
		calls && calls->depth ? bpf_map_lookup_elem(&also_lru_latches, &key) : NULL;

	return parks && parks->depth;
}

/*
 * The number of the goroutine that calls runtime.ready(). The call usually runs on the thread's
 * scheduler stack: then %r14 is m.g0, and m.curg is the goroutine, or NULL if the scheduler or a
 * timer calls. curg.m == m proves that the offsets are right.
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

/* At a function's entry, a walk by frame pointers skips the caller, whose address is at [sp]. */
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
