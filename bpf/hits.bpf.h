/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Judges hits, starts, stops and returns, whatever kind of probe they come from: a hit below the
 * threshold is only counted. The functions return what a program returns to its perf event.
 */
#ifndef MTBPF_HITS_BPF_H
#define MTBPF_HITS_BPF_H

#include "calls.bpf.h"
#include "condition.bpf.h"
#include "counters.bpf.h"
#include "entries.bpf.h"
#include "filter.bpf.h"
#include "fire.bpf.h"
#include "latch.bpf.h"
#include "off_cpu.bpf.h"
#include "regions.bpf.h"
#include "requests.bpf.h"
#include "stall.bpf.h"
#include "targets.bpf.h"
#include "task.bpf.h"

const volatile bool has_delay_thresh;
const volatile bool count_only;
const volatile bool conditional_entries;
const volatile bool returns_by_insn;  /* on_return is attached to each returning instruction */
const volatile bool measure_duration; /* threshold_ns is for the time from entry to return */
const volatile bool measure_mark;     /* threshold_ns is for the time since mtbpf_mark_start() */
const volatile bool stop_triggers;    /* the end of a region is a hit */
const volatile bool measure_region;   /* threshold_ns is for the length of the region */
const volatile bool pauses;	      /* Intel PT is resumed at -start and paused at -stop */
/* The target's CLOCK_MONOTONIC minus ours: time_namespaces(7). */
const volatile __u64 mark_offset_ns;

/* The threshold for delays or durations. User space may change it at any time. */
volatile __u64 threshold_ns;
/* The number of the latest hit, counted over all CPUs. */
__u64 last_sequence;
/* Calls whose duration was measured; counted only if limits.max_hits is set. */
__u64 n_returned;

/*
 * A uprobe event belongs to an address space: a vfork child hits the probe too before its execve.
 * With several processes or a cgroup, all processes that map the file hit it.
 */
static __always_inline bool is_target(void)
{
	return targets_are_processes() ? is_target_process(current_pid_tgid() >> 32)
				       : is_current_in_cgroup();
}

/* False for a thread's first hit, and if the delay began before the arming. */
static __always_inline bool take_delay(struct latch *latch, u64 now, u64 *delay)
{
	u64 last = latch->last_ns;

	latch->last_ns = now;
	/* The clock may step back a little between CPUs (ktime_get_mono_fast_ns). */
	*delay = last && now > last ? now - last : 0;
	return last && last >= armed_since_ns;
}

/* Judges, with -key, the time since the last hit of the same request, in any thread. */
static __always_inline bool pass_keyed_delay(struct mt_counters *stats, struct passed *passed)
{
	struct request_key key;
	struct since since = {};
	bool is_known;

	if (!key_of(passed->place, stats, &key))
		return false;
	is_known = find_request(passed->place, &key, &since) && since.ns < passed->time_ns &&
		   since.ns >= armed_since_ns;
	begin_request(&key, stats, passed->time_ns, 0);
	if (!is_known)
		return false;
	passed->reason = MT_HIT_DELAY;
	passed->since_ns = since.ns;
	passed->value_ns = passed->time_ns - since.ns;
	passed->key = since.key;
	passed->since_tid = since.tid;
	count_value(stats, passed->value_ns);
	return passed->value_ns >= threshold_ns;
}

static __always_inline bool pass_delay(struct mt_counters *stats, struct latch *latch,
				       struct passed *passed)
{
	u64 delay = 0, off_ns = off_cpu_ns(), last_off_ns;
	bool passes = !threshold_ns;

	if (!latch) {
		add_one(&stats->unmeasured);
	} else {
		last_off_ns = latch->last_off_ns;
		latch->last_off_ns = off_ns;
		if (take_delay(latch, passed->time_ns, &delay))
			passes = count_time(stats, delay, last_off_ns, threshold_ns,
					    &passed->off_ns);
		else
			passes = !cpu_measure && delay >= threshold_ns;
	}
	passed->reason = has_delay_thresh ? MT_HIT_DELAY : MT_HIT_EVERY;
	passed->value_ns = has_delay_thresh ? delay : 0;
	passed->since_ns = passed->time_ns - passed->value_ns;
	return passes;
}

/* Judges the time from since_ns to the hit; off_ns is off_cpu_ns() at since_ns. */
static __always_inline bool pass_since(struct mt_counters *stats, struct passed *passed, u64 off_ns)
{
	/*
	 * BPF reads the mark's clock without a lock (ktime_get_mono_fast_ns), so that the hit may
	 * seem to be before the mark.
	 */
	if (passed->since_ns < passed->time_ns)
		passed->value_ns = passed->time_ns - passed->since_ns;
	return count_time(stats, passed->value_ns, off_ns, threshold_ns, &passed->off_ns);
}

static __always_inline bool pass_mark(struct pt_regs *ctx, struct mt_counters *stats,
				      struct passed *passed)
{
	u64 mark = mark_of(ctx);

	if (!mark)
		return false;
	passed->since_ns = mark - mark_offset_ns;
	passed->reason = MT_HIT_MARK;
	return pass_since(stats, passed, 0);
}

/* Judges at the hit itself, for delays, marks and regions; durations are judged at the return. */
static __always_inline bool pass(struct pt_regs *ctx, struct mt_counters *stats,
				 struct latch *latch, struct passed *passed)
{
	if (measure_mark)
		return pass_mark(ctx, stats, passed);
	if (measure_region)
		return pass_since(stats, passed, passed->off_ns);
	return has_key ? pass_keyed_delay(stats, passed) : pass_delay(stats, latch, passed);
}

static __always_inline bool begin_call(struct pt_regs *ctx, struct latch *latch,
				       const struct passed *passed)
{
	struct open_call call = {
		.entry_ns = passed->time_ns,
		.sp = passed->place->kernel_sp ?: stack_place(ctx, by_goroutine),
		.sequence = passed->sequence,
		.ip = ctx->ip,
		.off_ns = off_cpu_ns(),
	};

	return push_call(latch, &call);
}

/* Begins the call, or, if no duration is measured, judges the hit. True if it passes. */
static __always_inline bool take_hit(const struct hit_place *place, struct mt_counters *stats,
				     struct latch *latch, struct passed *passed)
{
	add_one(&stats->hits);
	log_entry(place->regs, passed, 0);
	if (stalls_in(MT_STALL_HIT))
		open_stall(place, stats, passed->time_ns, passed->sequence, 0);
	if (!measure_duration)
		return pass(place->regs, stats, latch, passed);
	if (!latch || place->in_interrupt || !begin_call(place->regs, latch, passed)) {
		add_one(&stats->unmeasured);
		return false;
	}
	open_stalled_call(place, stats, latch, passed);
	if (keeps_prints)
		keep_prints(place, passed->sequence);
	return false;
}

/* since: the start of the region that ends here; empty if no region ends. */
static __always_inline int hit(const struct hit_place *place, struct latch *latch,
			       const struct since *since)
{
	struct mt_counters *stats = counters_of_cpu();
	struct passed passed = {.place = place,
				.time_ns = bpf_ktime_get_ns(),
				.since_ns = since->ns,
				.off_ns = since->off_ns,
				.key = since->key,
				.since_tid = since->tid,
				.reason = MT_HIT_REGION,
				.probe_ip = place->regs->ip};
	bool passes = false, is_last;

	/* The first arming sets not_before_ns; limits.max_hits counts the hits after it. */
	if (!stats || (limits.max_hits && !not_before_ns))
		return 0;
	is_last = limits.max_hits && n_returned >= (u32)limits.max_hits;
	if (!is_last) {
		passed.sequence = __sync_fetch_and_add(&last_sequence, 1) + 1;
		/*
		 * Hits after number max_hits are not judged. There are some if hit number max_hits
		 * triggered by what it measured, or came while disarmed: then the first one after
		 * the next arming is the last hit.
		 */
		if (!limits.max_hits || measure_duration || passed.sequence <= (u32)limits.max_hits)
			passes = take_hit(place, stats, latch, &passed);
		is_last = limits.max_hits && !measure_duration &&
			  passed.sequence >= (u32)limits.max_hits;
	}
	return fire(place->regs, stats, &passed, passes && !count_only, is_last);
}

/* Handles the hit that does not end a region. */
static __always_inline int hit_alone(const struct hit_place *place, struct latch *latch)
{
	return hit(place, latch, &(struct since){});
}

static __always_inline bool end_call(struct pt_regs *ctx, struct latch *latch,
				     struct open_call *call)
{
	if (!returns_by_insn)
		return pop_call(latch, stack_place(ctx, by_goroutine), call);
	return condition_holds(ctx) && pop_call_at(latch, stack_place(ctx, by_goroutine), call);
}

/* Judges the call that has ended and is no longer in the latch. */
static __always_inline int judge_call(const struct hit_place *place, struct mt_counters *stats,
				      const struct open_call *call)
{
	struct pt_regs *regs = place->regs;
	struct passed passed = {.place = place,
				.time_ns = bpf_ktime_get_ns(),
				.reason = MT_HIT_DURATION,
				.at_return = true,
				.sequence = call->sequence,
				.probe_ip = call->ip,
				.since_ns = call->entry_ns};
	bool passes = false;
	u64 returned;

	passed.value_ns = passed.time_ns > call->entry_ns ? passed.time_ns - call->entry_ns : 0;
	returned = limits.max_hits ? __sync_fetch_and_add(&n_returned, 1) + 1 : 0;
	if (returned <= (u32)limits.max_hits) {
		log_entry(regs, &passed, passed.time_ns);
		passes = count_time(stats, passed.value_ns, call->off_ns, threshold_ns,
				    &passed.off_ns);
	}
	return fire(regs, stats, &passed, passes && !count_only,
		    limits.max_hits && returned >= (u32)limits.max_hits);
}

static __always_inline int return_of(struct pt_regs *ctx, struct latch *latch)
{
	const struct hit_place place = {ctx, ctx};
	struct mt_counters *stats = counters_of_cpu();
	struct open_call call = {};
	int triggers;

	if (!stats || !latch || !end_call(ctx, latch, &call))
		return 0;
	close_stalled_call(latch);
	triggers = terms_hold(&place, true) ? judge_call(&place, stats, &call) : 0;
	forget_prints(call.sequence);
	return triggers;
}

static __always_inline bool is_hit(struct pt_regs *ctx)
{
	return is_target() && (!conditional_entries || condition_holds(ctx));
}

static __always_inline bool counts(const struct hit_place *place)
{
	return is_hit(place->regs) && terms_hold(place, false);
}

/* `socket`: socket_of() of the socket that a system call has read from; 0: none. */
static __always_inline void start(const struct hit_place *place, u64 socket)
{
	struct mt_counters *stats = counters_of_cpu();
	struct request_key key;

	if (has_key) {
		if (stats && key_of(place, stats, &key))
			begin_request(&key, stats, bpf_ktime_get_ns(), socket);
	} else if (begin_region(place->regs, off_cpu_ns(), socket) && stalls_in(MT_STALL_REGION)) {
		open_stall(place, stats, bpf_ktime_get_ns(), 0, 0);
	}
}

/* Finds the region of the thread, or of the request, that ends here. False if not found. */
static __always_inline bool end_since(const struct hit_place *place, struct since *since)
{
	struct mt_counters *stats = counters_of_cpu();
	struct request_key key;

	if (has_key)
		return stats && key_of(place, stats, &key) &&
		       end_request(place, &key, stats, since);
	since->ns = end_region(place, bpf_ktime_get_ns(), &since->off_ns);
	if (stalls_in(MT_STALL_REGION))
		close_stall();
	return since->ns;
}

/* Returning 1 pauses Intel PT: at each stop, or, if regions do not pause it, at the trigger. */
static __always_inline int stop(const struct hit_place *place, struct latch *latch)
{
	struct since since = {};
	int triggers = 0;

	if (end_since(place, &since) && stop_triggers && terms_hold(place, false))
		triggers = hit(place, latch, &since);
	return pauses ? 1 : triggers;
}

#endif
