// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * The programs on probes, tracepoints, breakpoints and timers; hits.bpf.h decides at each hit
 * whether it triggers. The return value filters the perf event that a program is attached to: 0
 * drops the event, 1 lets it happen (kernel/trace/trace_uprobe.c: __uprobe_perf_func).
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "also.bpf.h"
#include "go_waits.bpf.h"
#include "hits.bpf.h"
#include "oom.bpf.h"
#include "own_stack.bpf.h"
#include "syscalls.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

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

/* The program of a probe on Go's runtime, whose hits of the target `take` handles. */
#define GO_PROGRAM(name, take)                                                                     \
	SEC("uprobe")                                                                              \
	int name(struct pt_regs *ctx)                                                              \
	{                                                                                          \
		stay_on_own_stack(ctx);                                                            \
		if (is_hit(ctx))                                                                   \
			take(ctx);                                                                 \
		return 0;                                                                          \
	}
GO_PROGRAM(on_go_park, begin_park)
GO_PROGRAM(on_go_ready, make_ready)
GO_PROGRAM(on_go_execute, resume_park)

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
	/* The maps of regions and of requests exist only if these are used. */
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
	/* At fexit of the system call's function, the saved ax does not have the result yet. */
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
 * Handles the hit in a thread of the target. Its registers are those saved at its last entry into
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
/* Number of the function's probe, for copies on fentry and fexit: they cannot read a cookie. */
const volatile __u32 function_probe, stop_function_probe;

/*
 * A thread's kernel stack lies right below its saved registers, and is at most this large, even
 * with KASAN.
 */
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

/*
 * sp: above the stack address that enter_function() stored for the returning call, and at most that
 * of its caller's call.
 */
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
 * True if the thread has entered the kernel by a system call or a page fault. Page faults and
 * interrupts have no system call's number (arch/x86/entry/entry_64.S: idtentry_body), but the
 * return address of the function that handles them, which is right below the saved registers, tells
 * them apart.
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
/* True if the tracepoint of -start, or of -stop, is never reached in an interrupt. */
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
 * pointer, or a higher one. A return ends the open call with the same stack pointer, which is
 * judged only if it entered the same copy of the code.
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
