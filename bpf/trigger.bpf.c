// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * Decides at each hit of the probe whether it triggers. The return value filters the perf event
 * that the program is attached to: 0 drops the event, 1 lets it happen
 * (kernel/trace/trace_uprobe.c: __uprobe_perf_func). A hit below the threshold only counts.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "also.bpf.h"
#include "calls.bpf.h"
#include "condition.bpf.h"
#include "counters.bpf.h"
#include "entries.bpf.h"
#include "filter.bpf.h"
#include "fire.bpf.h"
#include "go_waits.bpf.h"
#include "latch.bpf.h"
#include "off_cpu.bpf.h"
#include "oom.bpf.h"
#include "own_stack.bpf.h"
#include "regions.bpf.h"
#include "requests.bpf.h"
#include "stall.bpf.h"
#include "syscalls.bpf.h"
#include "targets.bpf.h"
#include "task.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile bool has_delay_thresh;
const volatile bool count_only;
const volatile bool conditional_entries;
const volatile bool returns_by_insn;  /* on_return is attached to each returning instruction */
const volatile bool measure_duration; /* the time from entry to return decides */
const volatile bool measure_mark;     /* the time since mtbpf_mark_start() decides */
const volatile bool stop_triggers;    /* the end of a region is a hit */
const volatile bool measure_region;   /* the length of the region decides */
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
	is_known = find_request(&key, &since) && since.ns < passed->time_ns &&
		   since.ns >= armed_since_ns;
	begin_request(&key, stats, passed->time_ns);
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

/* Decides at the hit itself: for delays, marks and regions. */
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
		 * Hits after number max_hits are not judged: if that hit triggered, and the trigger
		 * is armed again, this hit ends the session.
		 */
		if (!limits.max_hits || measure_duration || passed.sequence <= (u32)limits.max_hits)
			passes = take_hit(place, stats, latch, &passed);
		is_last = limits.max_hits && !measure_duration &&
			  passed.sequence >= (u32)limits.max_hits;
	}
	return fire(place->regs, stats, &passed, passes && !count_only, is_last);
}

/* Handles one hit that does not end a region. */
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

/* Judges one call that has ended and is no longer in the latch. */
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

SEC("uprobe")
int on_hit(struct pt_regs *ctx)
{
	const struct hit_place place = {ctx, ctx};

	stay_on_own_stack(ctx);
	return counts(&place) ? hit_alone(&place, task_latch()) : 0;
}

SEC("uretprobe")
int on_return(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	return is_target() ? return_of(ctx, task_latch()) : 0;
}

SEC("uprobe")
int on_hit_lru(struct pt_regs *ctx)
{
	const struct hit_place place = {ctx, ctx};

	stay_on_own_stack(ctx);
	return counts(&place) ? hit_alone(&place, lru_latch(ctx)) : 0;
}

SEC("uretprobe")
int on_return_lru(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	return is_target() ? return_of(ctx, lru_latch(ctx)) : 0;
}

static __always_inline bool is_left(struct pt_regs *ctx)
{
	return is_target() && (!also_by_insn || condition_holds(ctx));
}

SEC("uprobe")
int on_also(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	return is_hit(ctx) ? enter_also(ctx, also_task_latch()) : 0;
}

SEC("uretprobe")
int on_also_return(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	return is_left(ctx) ? leave_by_return(ctx, also_task_latch()) : 0;
}

SEC("uprobe")
int on_also_lru(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	return is_hit(ctx) ? enter_also(ctx, also_lru_latch(ctx)) : 0;
}

SEC("uretprobe")
int on_also_return_lru(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	return is_left(ctx) ? leave_by_return(ctx, also_lru_latch(ctx)) : 0;
}

SEC("uprobe")
int on_go_park(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	if (is_hit(ctx))
		begin_park(ctx);
	return 0;
}

SEC("uprobe")
int on_go_ready(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	if (is_hit(ctx))
		make_ready(ctx);
	return 0;
}

SEC("uprobe")
int on_go_execute(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	if (is_hit(ctx))
		resume_park(ctx);
	return 0;
}

/* `socket`: socket_of() the socket that a system call has read from; 0: none. */
static __always_inline void start(const struct hit_place *place, u64 socket)
{
	struct mt_counters *stats = counters_of_cpu();
	struct request_key key;

	if (has_key) {
		if (stats && key_of(place, stats, &key))
			begin_request(&key, stats, bpf_ktime_get_ns());
	} else if (begin_region(place->regs, off_cpu_ns(), socket) && stalls_in(MT_STALL_REGION)) {
		open_stall(place, stats, bpf_ktime_get_ns(), 0, 0);
	}
}

/* Returning 1 resumes Intel PT, unless the trigger has frozen it. */
SEC("uprobe")
int on_start(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	if (!is_target())
		return 0;
	start(&(struct hit_place){ctx, ctx}, 0);
	return pauses && !is_frozen();
}

/* Finds the region of the thread, or of the request, that ends here. False if there is none. */
static __always_inline bool end_since(const struct hit_place *place, struct since *since)
{
	struct mt_counters *stats = counters_of_cpu();
	struct request_key key;

	if (has_key)
		return stats && key_of(place, stats, &key) && end_request(&key, stats, since);
	since->ns = end_region(bpf_ktime_get_ns(), &since->off_ns);
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

SEC("uprobe")
int on_stop(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	return is_target() ? stop(&(struct hit_place){ctx, ctx}, task_latch()) : 0;
}

SEC("uprobe")
int on_stop_lru(struct pt_regs *ctx)
{
	stay_on_own_stack(ctx);
	return is_target() ? stop(&(struct hit_place){ctx, ctx}, lru_latch(ctx)) : 0;
}

/*
 * System calls: these programs run on the tracepoints that all system calls share, or, as copies
 * with another type, on the entry and return of one function each; the context is the same. The
 * kernel does not run such a program on a CPU on which it is running already, so that it may use a
 * stack that belongs to the CPU (own_stack.bpf.h). The entry programs copy the registers that
 * ctx[0] points to, because the verifier lets them read a copy at any offset.
 */
static __always_inline struct latch *syscall_latch(const struct pt_regs *regs)
{
	return syscalls_use_lru ? latch_of_key(&lru_latches, latch_key(regs, false)) : task_latch();
}

static __always_inline void take_entry(const u64 *ctx, const struct mt_syscall *syscall)
{
	struct pt_regs regs;
	struct hit_place place = {(void *)ctx, &regs, true, syscall->probe, true, ctx[0]};
	struct since since = {};
	bool is_end;

	if (bpf_probe_read_kernel(&regs, sizeof(regs), (const void *)ctx[0]) ||
	    !is_meant(&regs, syscall))
		return;
	/* The maps exist only if regions are used. */
	is_end = (has_regions || has_key) && syscall->roles & MT_ROLE_STOPS &&
		 end_since(&place, &since) && stop_triggers;
	if (!is_end)
		since = (struct since){};
	if ((is_end || syscall->roles & MT_ROLE_HITS) && terms_hold(&place, false))
		hit(&place, syscall_latch(&regs), &since);
}

SEC("raw_tp/sys_enter")
int on_syscall(u64 *ctx)
{
	const struct mt_syscall *syscall =
		is_target() ? probed_syscall(ctx, MT_ROLE_HITS | MT_ROLE_STOPS) : NULL;

	if (syscall)
		take_entry(ctx, syscall);
	return 0;
}

/*
 * Handles the return of a system call. Its registers have the same stack pointer as at its entry.
 */
static __always_inline void take_return(const u64 *ctx, const struct mt_syscall *syscall)
{
	struct mt_counters *stats = counters_of_cpu();
	struct open_call call = {};
	struct pt_regs regs;
	struct hit_place place = {(void *)ctx, &regs, true, syscall->probe, true, ctx[0]};
	struct latch *latch;

	if (!stats || bpf_probe_read_kernel(&regs, sizeof(regs), (const void *)ctx[0]))
		return;
	/* At the end of the function, ax does not have the result yet. */
	regs.ax = ctx[1];
	if (syscall->roles & MT_ROLE_RETURNS) {
		latch = syscall_latch(&regs);
		if (latch && pop_call_at(latch, regs.sp, &call)) {
			close_stalled_call(latch);
			if (terms_hold(&place, true))
				judge_call(&place, stats, &call);
			forget_prints(call.sequence);
		}
	}
	if ((has_regions || has_key) && syscall->roles & MT_ROLE_STARTS &&
	    has_done((s64)ctx[1], syscall) && is_meant(&regs, syscall))
		start(&place, syscall->file_kind == MT_FILE_SOCKET ? socket_of(regs.di) : 0);
}

SEC("raw_tp/sys_exit")
int on_syscall_return(u64 *ctx)
{
	const struct mt_syscall *syscall =
		is_target() ? probed_syscall(ctx, MT_ROLE_RETURNS | MT_ROLE_STARTS) : NULL;

	if (syscall)
		take_return(ctx, syscall);
	return 0;
}

/* Bit n is set if signal n is a hit. */
const volatile __u64 signals;
const volatile __u32 tracepoint_probe, signal_probe;

/*
 * Handles one hit in a thread of the target. Its registers are those saved at its last entry into
 * the kernel.
 */
static __always_inline void hit_in_kernel(void *ctx, u32 probe)
{
	struct pt_regs regs;
	u64 saved = saved_registers();
	struct hit_place place = {ctx, &regs, true, probe, false, saved};

	if (!bpf_probe_read_kernel(&regs, sizeof(regs), (const void *)saved) &&
	    terms_hold(&place, false))
		hit_alone(&place, task_latch());
}

SEC("raw_tp")
int on_tracepoint(u64 *ctx)
{
	if (is_target())
		hit_in_kernel(ctx, tracepoint_probe);
	return 0;
}

/*
 * Functions of the kernel: the programs run on a kprobe and kretprobe, or, as copies with another
 * type, on fentry and fexit. A return is matched with its call by an address on the thread's kernel
 * stack, as with functions of user space (bpf/calls.bpf.h). For kprobes this is the stack pointer;
 * for fentry and fexit, whose programs one trampoline calls with one context, it is the context's
 * address.
 */
const volatile __u32 function_probe, stop_function_probe; /* the copies cannot read a cookie */

/* The kernel stack of a thread ends below its saved registers; at most as large as with KASAN. */
#define KERNEL_STACK_MAX 0x10000

static __always_inline int enter_function(void *ctx, u64 sp, u32 probe)
{
	struct pt_regs regs;
	u64 saved = saved_registers();
	struct hit_place place = {.ctx = ctx,
				  .regs = &regs,
				  .in_kernel = true,
				  .probe = probe,
				  .saved = saved,
				  .kernel_sp = sp,
				  .in_interrupt = saved - sp >= KERNEL_STACK_MAX};

	if (bpf_probe_read_kernel(&regs, sizeof(regs), (const void *)saved) ||
	    !terms_hold(&place, false))
		return 0;
	return hit_alone(&place, task_latch());
}

/* sp: above the returning call's address on the stack, and not above that of its caller. */
static __always_inline int leave_function(void *ctx, u64 sp, u32 probe)
{
	struct pt_regs regs;
	u64 saved = saved_registers();
	struct hit_place place = {ctx, &regs, true, probe, false, saved, sp};
	struct mt_counters *stats = counters_of_cpu();
	struct latch *latch = task_latch();
	struct open_call call = {};

	if (!stats || !latch || saved - sp >= KERNEL_STACK_MAX || !pop_call(latch, sp, &call))
		return 0;
	close_stalled_call(latch);
	return bpf_probe_read_kernel(&regs, sizeof(regs), (const void *)saved)
		       ? 0
		       : judge_call(&place, stats, &call);
}

/* Address of asm_exc_page_fault(), where page faults enter the kernel; 0: not known. */
const volatile __u64 page_fault_entry;
/* asm_exc_page_fault() is shorter: it saves the registers and calls exc_page_fault(). */
#define PAGE_FAULT_ENTRY_SIZE 64

/*
 * True if the thread has entered the kernel by a system call or a page fault. Other entries have no
 * number either (arch/x86/entry/entry_64.S: idtentry_body), but the return address of the function
 * that handles them, which is right below the saved registers, tells which entry it was.
 */
static __always_inline bool is_called_by_thread(u64 saved, const struct pt_regs *regs)
{
	u64 returns_to = 0;

	if ((s64)regs->orig_ax >= 0)
		return true;
	bpf_probe_read_kernel(&returns_to, sizeof(returns_to), (const void *)(saved - 8));
	return page_fault_entry && returns_to - page_fault_entry < PAGE_FAULT_ENTRY_SIZE;
}

/* The sp to pass for a probe that no interrupt reaches, such as a signal's delivery. */
#define SP_OF_THREAD 0

/*
 * True if the thread itself reached the probe, and not an interrupt. Sets *regs. An interrupt
 * neither begins nor ends a region of the thread that it interrupts: it runs on another stack if it
 * interrupts the kernel, and on the thread's if it interrupts user code
 * (arch/x86/include/asm/irq_stack.h: run_irq_on_irqstack_cond).
 */
static __always_inline bool is_own_call(u64 saved, u64 sp, struct pt_regs *regs)
{
	struct mt_counters *stats = counters_of_cpu();
	bool is_read = !bpf_probe_read_kernel(regs, sizeof(*regs), (const void *)saved);

	if (is_read && (sp == SP_OF_THREAD ||
			(saved - sp < KERNEL_STACK_MAX && is_called_by_thread(saved, regs))))
		return true;
	if (stats)
		add_one(&stats->unmeasured);
	return false;
}

static __always_inline void start_in_kernel(void *ctx, u64 sp)
{
	struct pt_regs regs;
	u64 saved = saved_registers();
	struct hit_place place = {.ctx = ctx, .regs = &regs, .in_kernel = true, .saved = saved};

	if (is_own_call(saved, sp, &regs))
		start(&place, 0);
}

static __always_inline int stop_in_kernel(void *ctx, u64 sp, u32 probe)
{
	struct pt_regs regs;
	u64 saved = saved_registers();
	struct hit_place place = {.ctx = ctx,
				  .regs = &regs,
				  .in_kernel = true,
				  .probe = probe,
				  .saved = saved,
				  .kernel_sp = sp};

	return is_own_call(saved, sp, &regs) ? stop(&place, task_latch()) : 0;
}

SEC("kprobe")
int on_function_start(struct pt_regs *ctx)
{
	if (is_target())
		start_in_kernel(ctx, ctx->sp);
	return 0;
}

/* Returning 1 freezes Intel PT, if its group has the kprobe's event. */
SEC("kprobe")
int on_function_stop(struct pt_regs *ctx)
{
	return is_target() ? stop_in_kernel(ctx, ctx->sp, bpf_get_attach_cookie(ctx)) : 0;
}

SEC("raw_tp")
int on_function_start_fentry(u64 *ctx)
{
	if (is_target())
		start_in_kernel(ctx, address_of(ctx));
	return 0;
}

SEC("raw_tp")
int on_function_stop_fentry(u64 *ctx)
{
	if (is_target())
		stop_in_kernel(ctx, address_of(ctx), stop_function_probe);
	return 0;
}

const volatile __u32 stop_tracepoint_probe, stop_signal_probe;
/* The tracepoint of -start, or of -stop, is never in an interrupt. */
const volatile bool start_tracepoint_is_own, stop_tracepoint_is_own;
/* Bit n is set if signal n begins, or ends, a region. */
const volatile __u64 start_signals, stop_signals;

/* The context of a tracepoint is on the stack of the code that reached it. */
SEC("raw_tp")
int on_tracepoint_start(u64 *ctx)
{
	if (is_target())
		start_in_kernel(ctx, start_tracepoint_is_own ? SP_OF_THREAD : address_of(ctx));
	return 0;
}

SEC("raw_tp")
int on_tracepoint_stop(u64 *ctx)
{
	if (is_target())
		stop_in_kernel(ctx, stop_tracepoint_is_own ? SP_OF_THREAD : address_of(ctx),
			       stop_tracepoint_probe);
	return 0;
}

SEC("raw_tp/signal_deliver")
int on_signal_start(u64 *ctx)
{
	u32 number = ctx[0];

	if (number < 64 && start_signals >> number & 1 && is_target())
		start_in_kernel(ctx, SP_OF_THREAD);
	return 0;
}

SEC("raw_tp/signal_deliver")
int on_signal_stop(u64 *ctx)
{
	u32 number = ctx[0];

	if (number < 64 && stop_signals >> number & 1 && is_target())
		stop_in_kernel(ctx, SP_OF_THREAD, stop_signal_probe);
	return 0;
}

/* Returning 1 freezes Intel PT, if its group has the kprobe's event. */
SEC("kprobe")
int on_function(struct pt_regs *ctx)
{
	return is_target() ? enter_function(ctx, ctx->sp, bpf_get_attach_cookie(ctx)) : 0;
}

SEC("kretprobe")
int on_function_return(struct pt_regs *ctx)
{
	return is_target() ? leave_function(ctx, ctx->sp, bpf_get_attach_cookie(ctx)) : 0;
}

SEC("raw_tp")
int on_function_fentry(u64 *ctx)
{
	if (is_target())
		enter_function(ctx, address_of(ctx), function_probe);
	return 0;
}

SEC("raw_tp")
int on_function_fexit(u64 *ctx)
{
	if (is_target())
		leave_function(ctx, address_of(ctx) + sizeof(u64), function_probe);
	return 0;
}

/*
 * The context begins with the signal's number. The program runs before the handler or the core
 * dump.
 */
SEC("raw_tp/signal_deliver")
int on_signal(u64 *ctx)
{
	u32 number = ctx[0];

	if (number < 64 && signals >> number & 1 && is_target())
		hit_in_kernel(ctx, signal_probe);
	return 0;
}

/*
 * Breakpoints of the CPU, on code of a JIT: the saved registers are those of that code. False if
 * the current thread does not belong to the target, or its registers cannot be read.
 */
static __always_inline bool find_breakpoint(void *ctx, struct hit_place *place)
{
	u64 saved = saved_registers();

	place->ctx = ctx;
	place->in_kernel = place->is_breakpoint = true;
	place->probe = bpf_get_attach_cookie(ctx) & MT_BREAKPOINT_PROBE;
	place->saved = saved;
	return is_target() &&
	       !bpf_probe_read_kernel(place->regs, sizeof(*place->regs), (const void *)saved);
}

SEC("perf_event")
int on_breakpoint(void *ctx)
{
	struct pt_regs regs;
	struct hit_place place = {.regs = &regs};

	if (find_breakpoint(ctx, &place) && terms_hold(&place, false))
		hit_alone(&place, task_latch());
	return 0;
}

/*
 * At an instruction that returns. A call may also end without reaching a breakpoint, if its code is
 * replaced while it runs. Such a call stays in the latch until the next call with its stack
 * pointer, or a higher one. A return belongs to the call with its stack pointer in the same copy of
 * the code, which is always entered at its entry.
 */
SEC("perf_event")
int on_breakpoint_return(void *ctx)
{
	struct pt_regs regs;
	struct hit_place place = {.regs = &regs};
	u64 entry = bpf_get_attach_cookie(ctx) >> MT_BREAKPOINT_SHIFT;
	struct mt_counters *stats = counters_of_cpu();
	struct latch *latch = task_latch();
	struct open_call call = {};

	if (!stats || !latch || !find_breakpoint(ctx, &place) ||
	    !pop_call_at(latch, regs.sp, &call))
		return 0;
	close_stalled_call(latch);
	if (call.ip == entry)
		judge_call(&place, stats, &call);
	return 0;
}

SEC("perf_event")
int on_breakpoint_start(void *ctx)
{
	struct pt_regs regs;
	struct hit_place place = {.regs = &regs};

	if (find_breakpoint(ctx, &place))
		start(&place, 0);
	return 0;
}

SEC("perf_event")
int on_breakpoint_stop(void *ctx)
{
	struct pt_regs regs;
	struct hit_place place = {.regs = &regs};

	if (find_breakpoint(ctx, &place))
		stop(&place, task_latch());
	return 0;
}

/*
 * Runs on the helper that fire() calls. Other programs may call the helper as well: before the
 * trigger this returns 0, and afterwards a call does not matter.
 */
SEC("kprobe")
int on_freeze(struct pt_regs *ctx)
{
	return is_frozen();
}

/* At the tracepoint oom:mark_victim. */
SEC("raw_tp/mark_victim")
int on_oom_victim(u64 *ctx)
{
	struct oom_victim victim = {};
	struct mt_counters *stats = counters_of_cpu();
	struct passed passed = {.time_ns = bpf_ktime_get_ns(), .reason = MT_HIT_EVERY};

	if (!stats || !find_victim(ctx[0], &victim))
		return 0;
	passed.since_ns = passed.time_ns;
	passed.sequence = __sync_fetch_and_add(&last_sequence, 1) + 1;
	passed.probe_ip = victim.regs.ip;
	add_one(&stats->hits);
	if (!count_only)
		fire_victim(&victim, stats, &passed);
	return 0;
}

/*
 * Filters the samples of each thread, if one clock per CPU is not possible: no samples after the
 * trigger (on any CPU), nor outside of regions.
 */
SEC("perf_event")
int on_sample(void *ctx)
{
	return !is_frozen() && is_recorded(bpf_get_current_pid_tgid());
}

/* The clock that checks whether threads are still in their calls. It does not take samples. */
SEC("perf_event")
int on_stall_clock(void *ctx)
{
	struct stall_look look = {.now_ns = bpf_ktime_get_ns(), .stats = counters_of_cpu()};

	if (look.stats)
		bpf_for_each_map_elem(&open_stalls, look_at_stall, &look, 0);
	return 0;
}

/* (bool preempt, struct task_struct *prev, struct task_struct *next, ...) */
SEC("raw_tp/sched_switch")
int on_switch(u64 *ctx)
{
	note_switch(ctx[2], bpf_ktime_get_ns());
	return 0;
}
