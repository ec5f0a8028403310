/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Stalls: a thread that has been in a call, region or delay for the threshold, and still is,
 * triggers. A timer checks the open calls, regions and delays: it is a perf event on one CPU, whose
 * program runs in an interrupt, because programs at uprobes may not start BPF timers.
 */
#ifndef MTBPF_STALL_BPF_H
#define MTBPF_STALL_BPF_H

#include "fire.bpf.h"
#include "latch.bpf.h"
#include "task.bpf.h"

const volatile __u64 stall_period_ns; /* period of the timer */
const volatile __u32 stall_from;      /* enum mt_stall_from */
const volatile bool stall_counts;     /* `watch`: each stall is counted once, and none triggers */
/* True if user space answers the questions of ask(). */
const volatile bool stall_asks;
/*
 * True if the source itself traces the threads with ptrace(2): then a traced thread does not count
 * as stopped by a debugger.
 */
const volatile bool traced_by_us;

/* A call, region or delay that has not ended yet, and its thread. */
struct open_stall {
	u64 since_ns;
	u64 stopped_ns; /* how long the process was stopped meanwhile */
	u64 looked_ns;	/* time of the last check; 0: none yet */
	u64 task;	/* the thread's struct task_struct */
	u64 regs;	/* address of its saved user registers, which never changes */
	u64 sp;		/* at the call's entry; 0 for regions and delays */
	u64 returns_to; /* return address, read at sp when the call began; 0: not known */
	u64 sequence;
	u64 ip; /* of the probe */
	u32 tid, tgid;
	u16 is_told;  /* it has been counted, or has tried to trigger */
	u16 question; /* number of the question whether the call is open; 0: not asked */
	u32 syscall;  /* as in struct mt_hit */
};

/* Key: tid in the initial pid namespace. Programs of perf events require a preallocated map. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MT_STALLS_MAX);
	__type(key, u32);
	__type(value, struct open_stall);
} open_stalls SEC(".maps");

/* Replaces the thread's earlier entry. sp is 0 for regions and delays. */
static __always_inline void open_stall(const struct hit_place *place, struct mt_counters *stats,
				       u64 now, u64 sequence, u64 sp)
{
	u32 tid = bpf_get_current_pid_tgid();
	u64 pid_tgid = current_pid_tgid();
	struct open_stall stall = {.since_ns = now,
				   .task = bpf_get_current_task(),
				   .regs = place->in_kernel ? place->saved : (u64)place->regs,
				   .sp = sp,
				   .sequence = sequence,
				   .ip = place->regs->ip,
				   .tid = (u32)pid_tgid,
				   .tgid = pid_tgid >> 32,
				   .syscall = place->is_syscall ? place->regs->orig_ax + 1 : 0};

	if (sp && (probe_at_entry || place->is_breakpoint))
		bpf_probe_read_user(&stall.returns_to, sizeof(stall.returns_to), (void *)sp);
	if (bpf_map_update_elem(&open_stalls, &tid, &stall, BPF_ANY) && stats)
		add_one(&stats->unmeasured);
}

static __always_inline void close_stall(void)
{
	u32 tid = bpf_get_current_pid_tgid();

	bpf_map_delete_elem(&open_stalls, &tid);
}

static __always_inline bool stalls_in(u32 from)
{
	return limits.stall_thresh_ns && stall_from == from;
}

/* Watches only the thread's outermost open call for a stall: calls inside it began later. */
static __always_inline void open_stalled_call(const struct hit_place *place,
					      struct mt_counters *stats, const struct latch *latch,
					      const struct passed *passed)
{
	if (stalls_in(MT_STALL_CALL) && latch->depth == 1)
		open_stall(place, stats, passed->time_ns, passed->sequence,
			   place->in_kernel && !place->is_breakpoint ? 0 : place->regs->sp);
}

static __always_inline void close_stalled_call(const struct latch *latch)
{
	if (stalls_in(MT_STALL_CALL) && !latch->depth)
		close_stall();
}

/* include/linux/sched.h, include/linux/sched/signal.h, include/linux/sched/jobctl.h */
#define PF_EXITING	    0x4
#define TASK_STOPPED_TRACED 0xc
#define SIGNAL_STOP_STOPPED 0x1
#define JOBCTL_TRAP_FREEZE  (1 << 23)

/* False if the thread ended inside the call: its task_struct may have been reused. */
static __always_inline bool is_alive(const struct open_stall *stall, u32 tid)
{
	return read_task(stall->task, task_at.pid) == tid &&
	       !(read_task(stall->task, task_at.flags) & PF_EXITING);
}

/*
 * True if the thread is stopped: by a signal, by a debugger or strace, or with its cgroup (docker
 * pause).
 */
static __always_inline bool is_task_stopped(const struct open_stall *stall)
{
	u64 signal = 0;

	bpf_probe_read_kernel(&signal, sizeof(signal),
			      (const void *)(stall->task + task_at.signal));
	if (signal && read_task(signal, task_at.signal_flags) & SIGNAL_STOP_STOPPED)
		return true;
	if (read_task(stall->task, task_at.jobctl) & JOBCTL_TRAP_FREEZE)
		return true;
	if (traced_by_us)
		return false;
	return read_task(stall->task, task_at.ptrace) ||
	       read_task(stall->task, task_at.state) & TASK_STOPPED_TRACED;
}

/*
 * Reads the registers as saved at the thread's last kernel entry: a running thread's are up to a
 * timer tick old.
 */
static __always_inline bool read_regs(const struct open_stall *stall, struct pt_regs *regs)
{
	return !bpf_probe_read_kernel(regs, sizeof(*regs), (const void *)stall->regs) &&
	       (regs->cs & 3) == 3;
}

/*
 * An exception or longjmp() leaves a call without a return. If the stack ends above the call's
 * frame, the call is over. The caller's next call has the same place on the stack, so it is not
 * told apart here.
 */
static __always_inline bool was_left(const struct open_stall *stall, const struct pt_regs *regs)
{
	return stall->sp && regs->sp > stall->sp;
}

/* Indexed by the question's number - 1: since_ns of the call that user space found open. */
volatile __u64 stall_answers[MT_ANSWERS];
__u32 n_questions;

struct stall_look {
	u64 now_ns;
	struct mt_counters *stats;
};

/*
 * Returns the duration so far, without the time in which the process was stopped; 0 if it is
 * stopped now.
 */
static __always_inline u64 lasted(struct open_stall *stall, u64 now_ns)
{
	u64 last_ns = stall->looked_ns > stall->since_ns ? stall->looked_ns : stall->since_ns;

	if (now_ns <= last_ns)
		return 0;
	stall->looked_ns = now_ns;
	if (is_task_stopped(stall)) {
		stall->stopped_ns += now_ns - last_ns;
		return 0;
	}
	return now_ns - stall->since_ns - stall->stopped_ns;
}

/*
 * Checks the limits of triggers without counting. A call that began before the arming never
 * triggers.
 */
static __always_inline bool may_fire(const struct open_stall *stall, u64 now_ns)
{
	return armed && stall->since_ns >= armed_since_ns && now_ns >= not_before_ns &&
	       (!limits.min_interval_ns || !last_trigger_ns ||
		now_ns >= last_trigger_ns + limits.min_interval_ns);
}

/* Fills the hit of a thread that is not the current one. Its stack is not copied. */
static __always_inline void fill_elsewhere(struct mt_hit *hit, const struct passed *passed)
{
	begin_hit(hit, passed);
	hit->n_branches = 0;
	/* The id is in the memory of a process that is not the current one. */
	hit->trace_id[0] = hit->trace_id[1] = 0;
}

static __always_inline void fill_stalled(struct mt_hit *hit, const struct open_stall *stall,
					 const struct pt_regs *regs, const struct passed *passed)
{
	fill_elsewhere(hit, passed);
	take_registers(regs, hit);
	hit->tid = stall->tid;
	hit->tgid = stall->tgid;
	hit->stack[0] = regs->ip;
	hit->stack_depth = 1;
	hit->syscall = stall->syscall;
}

/* Returns 1 if the stall triggers. */
static __always_inline int fire_stall(struct open_stall *stall, const struct pt_regs *regs,
				      struct stall_look *look, u64 value_ns)
{
	struct passed passed = {.time_ns = look->now_ns,
				.since_ns = stall->since_ns,
				.value_ns = value_ns,
				.sequence = stall->sequence,
				.probe_ip = stall->ip,
				.reason = MT_HIT_STALL};
	struct mt_hit *hit;

	stall->is_told = 1;
	hit = claim(look->stats, &passed);
	if (!hit)
		return 0;
	fill_stalled(hit, stall, regs, &passed);
	bpf_ringbuf_submit(hit, BPF_RB_FORCE_WAKEUP);
	return 1;
}

/*
 * Asks user space whether the call is still open: this program runs in an interrupt of any process
 * and cannot read the stack, where the return address may have been overwritten. It asks shortly
 * before the threshold is met, with a hit without an arming. User space answers, or removes the
 * call if it is over. Until then nothing triggers. The tid is that of the initial pid namespace.
 * For a function of a JIT, the question also has the thread's present ip and sp and the probe's
 * address: user space checks that the thread is in that function's code, or will return to it.
 */
static __always_inline void ask(struct open_stall *stall, u32 tid, const struct pt_regs *regs)
{
	struct mt_hit *hit;

	hit = bpf_ringbuf_reserve(&hits, sizeof(*hit) + (u64)copy_pieces * MT_COPY_PIECE, 0);
	if (!hit)
		return;
	stall->question = __sync_fetch_and_add(&n_questions, 1) % MT_ANSWERS + 1;
	hit->reason = MT_HIT_STALL;
	hit->arming = 0;
	hit->sequence = stall->question;
	hit->time_ns = stall->since_ns;
	hit->tid = tid;
	hit->tgid = stall->tgid;
	hit->sp = stall->sp;
	hit->ip = stall->returns_to;
	hit->probe_ip = stall->ip;
	hit->bp = regs->sp;
	hit->stack[0] = regs->ip;
	hit->stack_depth = 1;
	hit->copied = hit->n_args = hit->n_branches = 0;
	bpf_ringbuf_submit(hit, BPF_RB_FORCE_WAKEUP);
}

static __always_inline bool is_confirmed(const struct open_stall *stall)
{
	u32 i = stall->question - 1;

	if (!stall_asks || !stall->returns_to)
		return true;
	return i < MT_ANSWERS && stall_answers[i] == stall->since_ns;
}

/* A callback of bpf_for_each_map_elem(): returning 1 ends the loop. */
static long look_at_stall(void *map, const void *key, void *value, void *context)
{
	struct stall_look *look = context;
	struct open_stall *stall = value;
	u32 tid = *(const u32 *)key;
	struct pt_regs regs;
	u64 value_ns;

	if (!is_alive(stall, tid)) {
		bpf_map_delete_elem(map, key);
		return 0;
	}
	value_ns = lasted(stall, look->now_ns);
	if (value_ns + 2 * stall_period_ns < limits.stall_thresh_ns || stall->is_told ||
	    !read_regs(stall, &regs))
		return 0;
	if (stall->returns_to && stall_asks && !stall->question && armed && value_ns)
		ask(stall, tid, &regs);
	if (value_ns < limits.stall_thresh_ns || was_left(stall, &regs))
		return 0;
	if (stall_counts) {
		stall->is_told = 1;
		add_one(&look->stats->stalls);
		return 0;
	}
	if (!is_confirmed(stall) || !may_fire(stall, look->now_ns))
		return 0;
	return fire_stall(stall, &regs, look, value_ns);
}

#endif
