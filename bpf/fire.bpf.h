/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Turns the hit that passed the threshold into the trigger: disarms, freezes, and tells user space.
 */
#ifndef MTBPF_FIRE_BPF_H
#define MTBPF_FIRE_BPF_H

#include "counters.bpf.h"
#include "freezer.bpf.h"
#include "pid_namespace.bpf.h"
#include "reads.bpf.h"
#include "trace_id.bpf.h"

/*
 * True if the entry probe is before the first change of the stack pointer, where [sp] is the return
 * address.
 */
const volatile bool probe_at_entry;

/*
 * True if programs without a perf event freeze Intel PT by calling the helper MT_FREEZE_CALL: a
 * kprobe on the helper is in Intel PT's group, and its program (on_freeze) lets it overflow once
 * the trigger has fired.
 */
const volatile bool freezes_by_call;

/* The number of stack pieces to copy, at most MT_COPY_PIECES; a constant for the verifier. */
const volatile __u32 copy_pieces;

/*
 * The number of the latest arming if armed: the next hit that passes triggers; 0: not armed. User
 * space sets it, and the trigger clears it.
 */
volatile __u32 armed;
/* Time of the arming: a call or delay that began earlier never triggers. */
volatile __u64 armed_since_ns;
const volatile struct mt_limits limits;
volatile __u64 not_before_ns; /* first arming + limits.after_ns; 0: not armed yet */
/* State of is_within_limits(). */
__u64 last_trigger_ns; /* 0: none yet */
__u64 n_passed;

/* User space sets its size: a few hits with their stacks. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} hits SEC(".maps");

/* The start of the time that ends with a hit. */
struct since {
	u64 ns;	    /* 0: not known */
	u64 off_ns; /* off_cpu_ns() at that time */
	u64 key;    /* with -key: the key of the request; otherwise 0 */
	u32 tid;    /* the thread if it may differ from the current one; otherwise 0 */
};

/* A hit that is being judged: what it measured, before and after the threshold is compared. */
struct passed {
	const struct hit_place *place;
	u64 time_ns;
	u64 since_ns; /* start of the measured time */
	u64 value_ns;
	u64 off_ns; /* the part of value_ns off the CPU, if measured */
	u64 sequence;
	u64 probe_ip; /* address of the probe; for a duration: of the entry probe */
	u64 key;
	u32 since_tid;
	u32 reason;
	u32 arming;	/* set by take_arming() when the hit triggers; until then 0 */
	bool at_return; /* a call has returned: the registers have its result */
};

/*
 * Fills stack[first..] with return addresses; `| 1` skips the frame of the ip itself. Returns the
 * depth.
 */
static __always_inline u32 walk_stack(void *ctx, struct mt_hit *hit, const u32 first)
{
	long bytes = bpf_get_stack(ctx, &hit->stack[first], sizeof(hit->stack) - 8 * first,
				   BPF_F_USER_STACK | 1);

	return bytes > 0 ? first + (u32)bytes / 8 : first;
}

/*
 * At a function's entry the frame pointer is still the caller's, so that following frame pointers
 * skips the caller. Some kernels handle this (arch/x86/events/core.c: is_uprobe_at_func_entry, for
 * push %rbp); for others the caller is read from [sp].
 */
static __always_inline u32 take_stack(const struct pt_regs *regs, void *ctx, struct mt_hit *hit)
{
	u64 caller = 0;
	u32 depth;

	hit->stack[0] = regs->ip;
	if (!probe_at_entry || hit->reason == MT_HIT_DURATION ||
	    bpf_probe_read_user(&caller, sizeof(caller), (void *)regs->sp))
		return walk_stack(ctx, hit, 1);
	hit->stack[1] = caller;
	depth = walk_stack(ctx, hit, 2);
	return depth > 2 && hit->stack[2] == caller ? walk_stack(ctx, hit, 1) : depth;
}

/* Copies the stack as far as it can be read without a page fault. Returns the number of bytes. */
static __always_inline u32 copy_stack(const struct pt_regs *ctx, char *out)
{
	u64 from = ctx->sp & ~(u64)(MT_COPY_PIECE - 1);

	for (u32 i = 0; i < MT_COPY_PIECES && i < copy_pieces; i++)
		if (bpf_probe_read_user(out + i * MT_COPY_PIECE, MT_COPY_PIECE,
					(const void *)(from + i * MT_COPY_PIECE)))
			return i * MT_COPY_PIECE;
	return copy_pieces * MT_COPY_PIECE;
}

static __always_inline void take_registers(const struct pt_regs *ctx, struct mt_hit *hit)
{
	hit->ip = ctx->ip;
	hit->sp = ctx->sp;
	hit->bp = ctx->bp;
	hit->bx = ctx->bx;
	hit->r12 = ctx->r12;
	hit->r13 = ctx->r13;
	hit->r14 = ctx->r14;
	hit->r15 = ctx->r15;
}

/* True if each hit that triggers gets the CPU's last branch records; needs Linux 5.16. */
const volatile bool take_branches;

static __always_inline void take_last_branches(struct mt_hit *hit)
{
	long bytes;

	hit->n_branches = 0;
	if (!take_branches)
		return;
	bytes = bpf_get_branch_snapshot(hit->branches, sizeof(hit->branches), 0);
	if (bytes > 0)
		hit->n_branches = (u64)bytes / sizeof(hit->branches[0]);
}

/* Fills the members that every hit has, whichever program finds it; not registers or the stack. */
static __always_inline void begin_hit(struct mt_hit *hit, const struct passed *passed)
{
	hit->time_ns = passed->time_ns;
	hit->value_ns = passed->value_ns;
	hit->sequence = passed->sequence;
	hit->reason = passed->reason;
	hit->arming = passed->arming;
	hit->probe_ip = passed->probe_ip;
	hit->off_cpu_ns = passed->off_ns;
	hit->key = passed->key;
	hit->since_tid = passed->since_tid;
	hit->cpu = bpf_get_smp_processor_id();
	hit->copied = 0;
	clear_args(hit);
	hit->n_prints = n_prints;
	if (n_prints)
		clear_prints(hit->prints);
	if (keeps_prints)
		copy_kept(passed->sequence, hit->prints);
}

static __always_inline void fill_hit(struct pt_regs *ctx, struct mt_hit *hit,
				     const struct passed *passed)
{
	u64 pid_tgid = current_pid_tgid();

	/* This comes first: the branches of this program overwrite the last branch records. */
	take_last_branches(hit);
	begin_hit(hit, passed);
	take_registers(ctx, hit);
	hit->tid = (u32)pid_tgid;
	hit->tgid = pid_tgid >> 32;
	hit->stack_depth = take_stack(ctx, passed->place->ctx, hit);
	hit->syscall = passed->place->is_syscall ? ctx->orig_ax + 1 : 0;
	if (reads_args && !passed->at_return)
		take_args(ctx, probe_of(passed->place), hit);
	take_trace_id(hit);
	if (n_prints)
		read_prints(passed->place, passed->at_return, hit->prints);
	hit->copied = copy_stack(ctx, (char *)(hit + 1));
}

/* True if the limits allow this hit, which passed the threshold while armed, to trigger. */
static __always_inline bool is_within_limits(const struct passed *passed)
{
	if (passed->reason == MT_HIT_LAST)
		return true;
	if (passed->time_ns < not_before_ns)
		return false;
	if (limits.min_interval_ns && last_trigger_ns &&
	    passed->time_ns < last_trigger_ns + limits.min_interval_ns)
		return false;
	return !limits.skip || __sync_fetch_and_add(&n_passed, 1) >= (u32)limits.skip;
}

/* Makes this hit the trigger: disarms, and freezes the recording. False if it does not trigger. */
static __always_inline bool take_arming(struct mt_counters *stats, struct passed *passed)
{
	volatile struct mt_freezer *freezer = freezer_state();
	const u32 found = armed;

	/*
	 * A plain read comes first: most hits that pass find the trigger disarmed and need no bus
	 * lock.
	 */
	if (!found || !freezer || passed->since_ns < armed_since_ns) {
		add_one(&stats->unarmed);
		return false;
	}
	if (!is_within_limits(passed)) {
		add_one(&stats->let_pass);
		return false;
	}
	if (__sync_val_compare_and_swap(&armed, found, 0) != found) {
		add_one(&stats->unarmed);
		return false;
	}
	freezer->frozen = passed->arming = found;
	freezer->frozen_ns = passed->time_ns;
	add_one(&stats->triggers);
	return true;
}

/*
 * Reserves the trigger's entry in the ring buffer. NULL: the buffer is full, and the trigger is
 * armed again.
 */
static __always_inline struct mt_hit *reserve_hit(struct mt_counters *stats,
						  const struct passed *passed)
{
	struct mt_hit *hit =
		bpf_ringbuf_reserve(&hits, sizeof(*hit) + (u64)copy_pieces * MT_COPY_PIECE, 0);
	volatile struct mt_freezer *freezer;

	if (hit) {
		last_trigger_ns = passed->time_ns;
		return hit;
	}
	add_one(&stats->dropped);
	freezer = freezer_state();
	if (freezer)
		freezer->frozen = 0;
	__sync_val_compare_and_swap(&armed, 0, passed->arming);
	return NULL;
}

/* Makes this hit the trigger, and reserves its entry. NULL: it does not trigger. */
static __always_inline struct mt_hit *claim(struct mt_counters *stats, struct passed *passed)
{
	return take_arming(stats, passed) ? reserve_hit(stats, passed) : NULL;
}

/* Makes this hit the last one of the recording, which triggers whatever it measured. */
static __always_inline void make_last(struct passed *passed)
{
	passed->reason = MT_HIT_LAST;
	passed->value_ns = 0;
	passed->since_ns = passed->time_ns;
}

/*
 * Returns the program's return value: 1 if this hit triggers. It triggers if it passes the
 * threshold and the limits allow it, or if it is the last hit. Each program calls this only once,
 * since the verifier checks each inlined copy.
 */
static __always_inline int fire(struct pt_regs *ctx, struct mt_counters *stats,
				struct passed *passed, bool passes, bool is_last)
{
	bool triggers = passes && take_arming(stats, passed);
	struct mt_hit *hit;

	if (!triggers && is_last) {
		make_last(passed);
		triggers = take_arming(stats, passed);
	}
	/*
	 * There is only one reservation: with two, Linux 6.1's verifier forgets that the used one
	 * has been compared with NULL.
	 */
	hit = triggers ? reserve_hit(stats, passed) : NULL;
	if (!hit)
		return 0;
	if (freezes_by_call && passed->place->in_kernel)
		bpf_get_numa_node_id(); /* MT_FREEZE_CALL */
	fill_hit(ctx, hit, passed);
	bpf_ringbuf_submit(hit, BPF_RB_FORCE_WAKEUP);
	return 1;
}

#endif
