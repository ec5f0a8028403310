/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The latch: the state of each thread, or goroutine, between two hits. It is kept in task storage
 * (freed with its thread, without a maximum size; needs the kernel's BTF), or in an LRU hash: by
 * tid, or by goroutine.
 */
#ifndef MTBPF_LATCH_BPF_H
#define MTBPF_LATCH_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"
#include "pid_namespace.bpf.h"

/* A call that has not returned yet. */
struct open_call {
	u64 entry_ns;
	u64 sp; /* at the entry probe */
	u64 sequence;
	u64 ip;	    /* of the entry probe */
	u64 off_ns; /* off_cpu_ns() at entry_ns */
};

struct latch {
	u64 last_ns;	 /* time of the previous hit; 0: none */
	u64 last_off_ns; /* off_cpu_ns() at that time */
	u32 depth;	 /* number of open calls in calls[], outermost first: sp descends */
	u32 pad;
	struct open_call calls[MT_CALL_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct latch);
} task_latches SEC(".maps");

/*
 * If a latch is evicted, one delay is not measured, and none is wrong. But a new thread that gets
 * the tid of an ended one finds the old latch, and measures one wrong delay. User space sizes this
 * by the number of CPUs, since the kernel keeps free entries for each CPU.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct latch);
} lru_latches SEC(".maps");

/* Static, since it is too large for the BPF stack. */
static const struct latch empty_latch;

/* NULL if memory ran out, or if another thread was preempted inside task storage on this CPU. */
static __always_inline struct latch *latch_of_task(void *latches)
{
	return bpf_task_storage_get(latches, bpf_get_current_task_btf(), NULL,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline struct latch *latch_of_key(void *latches, u32 key)
{
	struct latch *latch = bpf_map_lookup_elem(latches, &key);

	if (latch)
		return latch;
	bpf_map_update_elem(latches, &key, &empty_latch, BPF_NOEXIST);
	return bpf_map_lookup_elem(latches, &key);
}

static __always_inline struct latch *task_latch(void)
{
	return latch_of_task(&task_latches);
}

/*
 * True for Go: a call belongs to a goroutine, which may change threads during the call, and whose
 * stack may be moved. In compiled Go code %r14 points to the running goroutine's struct g
 * (src/cmd/compile/abi-internal.md), which begins with the bounds of the goroutine's stack: lo, hi
 * (src/runtime/runtime2.go).
 */
const volatile bool by_goroutine;

const volatile struct mt_go_offsets go_offsets;

/* Identifies a goroutine within its process by the address of its struct g. */
static __always_inline u32 goroutine_at(u64 g)
{
	return g >> 4;
}

static __always_inline u32 goroutine_of(const struct pt_regs *ctx)
{
	return goroutine_at(ctx->r14);
}

static __always_inline u64 read_user_word(u64 at)
{
	u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (const void *)at);
	return word;
}

/* The goroutine's number as in Go's messages; 0: not known, or the scheduler's own g. */
static __always_inline u64 goid_of(u64 g)
{
	return go_offsets.goid ? read_user_word(g + go_offsets.goid) : 0;
}

static __always_inline u32 goroutine_key(u64 g)
{
	return goroutine_at(g) ^ (u32)(current_pid_tgid() >> 32) * 0x9e3779b1;
}

static __always_inline u32 latch_key(const struct pt_regs *ctx, bool of_goroutine)
{
	return of_goroutine ? goroutine_key(ctx->r14) : (u32)current_pid_tgid();
}

static __always_inline struct latch *lru_latch(const struct pt_regs *ctx)
{
	return latch_of_key(&lru_latches, latch_key(ctx, by_goroutine));
}

/*
 * The stack pointer, which identifies a call; for a goroutine, relative to its stack's upper end.
 */
static __always_inline u64 stack_place(const struct pt_regs *ctx, bool of_goroutine)
{
	u64 hi = 0;

	if (of_goroutine)
		bpf_probe_read_user(&hi, sizeof(hi), (const void *)(ctx->r14 + 8));
	return ctx->sp - hi;
}

#endif
