/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Waits of goroutines in calls that are measured, by probes at three functions of Go's runtime:
 *
 *	gopark(..., reason, ...)	the goroutine in %r14 begins to wait
 *	ready(gp, ...)			somebody makes the goroutine in %rax ready
 *	execute(gp, ...)		a thread's scheduler goes on with the goroutine in %rax
 *
 * gopark() returns after execute(). A probe on its return instruction would be single-stepped, at
 * ten times the cost; at execute() and the others the kernel emulates the probed instruction. For a
 * goroutine outside of such calls a probe does one or two lookups.
 */
#ifndef MTBPF_GO_WAITS_BPF_H
#define MTBPF_GO_WAITS_BPF_H

#include "also.bpf.h"

/* The wait of a goroutine that is in gopark(). */
struct go_park {
	u64 start_ns;
	u64 sp;	      /* relative to the stack's upper end */
	u64 sequence; /* in park_log */
	u64 ip;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); /* goroutine_key() */
	__type(value, struct go_park);
} go_parks SEC(".maps");

/* The calls of gopark(), indexed by their number. */
struct log_of_entries park_log SEC(".maps");

struct go_stack_log {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MT_GO_STACKS);
	__type(key, u32);
	__type(value, struct mt_go_stack);
};

struct go_stack_log ready_log SEC(".maps");
/* The stacks at gopark(), indexed by the number in park_log. */
struct go_stack_log park_stacks SEC(".maps");

__u64 last_park;      /* the number of the latest entry in park_log */
__u64 n_ready;	      /* entries ever written to ready_log */
__u64 n_go_wait_hits; /* hits of the probes on gopark(), ready() and execute() */

/* At a function's entry, a walk by frame pointers skips the caller, whose address is at [sp]. */
static __always_inline u32 walk_from_entry(struct pt_regs *ctx, struct mt_go_stack *at)
{
	long bytes;

	at->stack[0] = ctx->ip;
	at->stack[1] = read_user_word(ctx->sp);
	bytes = bpf_get_stack(ctx, &at->stack[2], sizeof(at->stack) - 16, BPF_F_USER_STACK | 1);
	return bytes > 0 ? 2 + (u32)bytes / 8 : 2;
}

/*
 * Writes entry n of a log: the stack of this thread, which parks the goroutine g or makes it ready.
 */
static __always_inline void note_stack(struct pt_regs *ctx, void *log, u64 n, u64 g, u64 goid,
				       u64 now)
{
	u32 key = n & (MT_GO_STACKS - 1);
	struct mt_go_stack *at = bpf_map_lookup_elem(log, &key);
	u64 pid_tgid = current_pid_tgid();

	if (!at)
		return;
	begin_write(&at->time_ns);
	at->tid = (u32)pid_tgid;
	at->tgid = pid_tgid >> 32;
	at->goroutine = goroutine_at(g);
	at->cpu = bpf_get_smp_processor_id();
	at->goid = goid;
	at->depth = walk_from_entry(ctx, at);
	end_write(&at->time_ns, now);
}

static __always_inline bool has_open_call(void *latches, u32 key)
{
	const struct latch *latch = bpf_map_lookup_elem(latches, &key);

	return latch && latch->depth;
}

/* True if the goroutine is in a call that is measured. */
static __always_inline bool is_measured(u32 key)
{
	return has_open_call(&lru_latches, key) || has_open_call(&also_lru_latches, key);
}

/* Logs the end of the wait; `kind`: MT_ENTRY_CALL, or MT_ENTRY_LEFT if execute() was missed. */
static __always_inline void end_park(const struct go_park *park, u64 g, u32 kind, u64 now)
{
	struct mt_entry *entry;

	if (is_frozen() || last_park - park->sequence >= MT_ENTRY_LOG)
		return;
	entry = begin_entry(&park_log, park->sequence, park->ip);
	if (!entry)
		return;
	entry->end_ns = now > park->start_ns ? now : park->start_ns;
	entry->kind = kind;
	entry->goroutine = goroutine_at(g);
	entry->goid = goid_of(g);
	end_write(&entry->start_ns, park->start_ns);
}

/*
 * Returns the number of the wait in park_log. If gopark()'s frame does not fit, the stack is moved
 * and gopark() starts again (src/runtime/asm_amd64.s: morestack): both starts are one wait.
 */
static __always_inline u64 park_number(u32 key, const struct go_park *park, u64 g)
{
	const struct go_park *last = bpf_map_lookup_elem(&go_parks, &key);

	if (last && last->sp == park->sp && last_park - last->sequence < MT_ENTRY_LOG)
		return last->sequence;
	if (last)
		end_park(last, g, MT_ENTRY_LEFT, park->start_ns);
	return __sync_fetch_and_add(&last_park, 1) + 1;
}

static __always_inline void begin_park(struct pt_regs *ctx)
{
	const u32 key = goroutine_key(ctx->r14);
	struct go_park park = {
		.start_ns = bpf_ktime_get_ns(), .sp = stack_place(ctx, true), .ip = ctx->ip};
	struct mt_entry *entry;

	__sync_fetch_and_add(&n_go_wait_hits, 1);
	if (is_frozen() || !is_measured(key))
		return;
	park.sequence = park_number(key, &park, ctx->r14);
	bpf_map_update_elem(&go_parks, &key, &park, BPF_ANY);
	entry = begin_entry(&park_log, park.sequence, park.ip);
	if (!entry)
		return;
	entry->end_ns = 0;
	entry->kind = MT_ENTRY_CALL;
	/* The thread, and the third argument (%cx in Go's ABIInternal): the reason. */
	entry->returns_to = (u64)entry->tid << 8 | (ctx->cx & 0xff);
	entry->goroutine = goroutine_of(ctx);
	entry->goid = goid_of(ctx->r14);
	end_write(&entry->start_ns, park.start_ns);
	note_stack(ctx, &park_stacks, park.sequence, ctx->r14, 0, park.start_ns);
}

static __always_inline void resume_park(const struct pt_regs *ctx)
{
	const u32 key = goroutine_key(ctx->ax);
	const struct go_park *park;

	__sync_fetch_and_add(&n_go_wait_hits, 1);
	park = bpf_map_lookup_elem(&go_parks, &key);
	if (!park)
		return;
	end_park(park, ctx->ax, MT_ENTRY_CALL, bpf_ktime_get_ns());
	bpf_map_delete_elem(&go_parks, &key);
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

static __always_inline void make_ready(struct pt_regs *ctx)
{
	u32 key = goroutine_key(ctx->ax);

	__sync_fetch_and_add(&n_go_wait_hits, 1);
	if (!is_frozen() && bpf_map_lookup_elem(&go_parks, &key))
		note_stack(ctx, &ready_log, __sync_fetch_and_add(&n_ready, 1), ctx->ax,
			   current_goid(ctx), bpf_ktime_get_ns());
}

#endif
