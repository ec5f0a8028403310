// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * The flight recorder in the kernel. It selects the target's timed samples, takes the stacks of its
 * threads when they leave a CPU, and keeps a log per CPU of who ran when, who woke whom, and who
 * ran instead. Other processes are logged only while a thread of the target waits for their CPU. It
 * counts the time that interrupts take from the target's threads, and reads from the kernel's
 * counters the time lost to cgroup quotas (CFS bandwidth) and to the hypervisor (steal). A separate
 * object, since it needs the kernel's BTF.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "freezer.bpf.h"
#include "kernel.bpf.h"
#include "logs.bpf.h"
#include "mtbpf_shared.h"
#include "open_regions.bpf.h"
#include "switch_stack.bpf.h"
#include "targets.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The target cgroup's inode number and its depth in the hierarchy. */
const volatile __u64 target_cgroup_id;
const volatile __s32 target_cgroup_level;

static __always_inline bool is_in_cgroup(struct task_struct *task)
{
	struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp), *at = NULL;
	u32 level = target_cgroup_level;
	u64 id = 0;

	if (BPF_CORE_READ(cgroup, level) < target_cgroup_level)
		return false;
	if (bpf_core_field_exists(struct cgroup___ancestors, ancestors)) {
		bpf_probe_read_kernel(
			&at, sizeof(at),
			(void *)cgroup +
				bpf_core_field_offset(struct cgroup___ancestors, ancestors) +
				level * sizeof(at));
		return at && BPF_CORE_READ(at, kn, id) == target_cgroup_id;
	}
	if (bpf_core_field_exists(struct cgroup___ancestor_ids, ancestor_ids))
		bpf_probe_read_kernel(
			&id, sizeof(id),
			(void *)cgroup +
				bpf_core_field_offset(struct cgroup___ancestor_ids, ancestor_ids) +
				level * sizeof(id));
	return id == target_cgroup_id;
}

static __always_inline bool is_target(struct task_struct *task)
{
	return targets_are_processes() ? is_target_process(task->tgid) : is_in_cgroup(task);
}

static __always_inline u32 cpu_of(struct task_struct *task)
{
	struct task_struct___cpu *old = (void *)task;

	if (bpf_core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return bpf_core_field_exists(old->cpu) ? old->cpu : 0;
}

/* Set by user space: nothing is written until it is cleared. */
volatile __u32 stopped = 1;
/* Records per CPU, a power of two. */
const volatile __u32 log_size = 1;

/* User space sets the sizes of both maps; a CPU without a slot does not log. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mt_record);
} cpu_logs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mt_cpu);
} cpus SEC(".maps");

static __always_inline bool is_stopped(void)
{
	return stopped || is_frozen();
}

static __always_inline struct mt_cpu *this_cpu(void)
{
	u32 key = bpf_get_smp_processor_id();
	struct mt_cpu *cpu = bpf_map_lookup_elem(&cpus, &key);

	return cpu && cpu->slot ? cpu : NULL;
}

/*
 * Returns the registers of the system call that the task is in, or NULL. A task that entered the
 * kernel by an interrupt has orig_ax -1 (arch/x86/entry); otherwise orig_ax is the number of its
 * system call. An interrupt during a system call is known by in_hardirq and in_irq_softirq.
 */
static __always_inline struct pt_regs *syscall_of(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	return task->mm && regs && (long)regs->orig_ax >= 0 ? regs : NULL;
}

/*
 * Returns the next record of this CPU's log. The programs that write to the log run with interrupts
 * off, or (at system calls) can only be interrupted by such programs, which then take the next
 * number. The record is valid after end_write(), which sets its time.
 */
static __always_inline struct mt_record *new_record(struct mt_cpu *cpu, u32 tgid, u32 tid, u32 kind)
{
	u32 key = (cpu->slot - 1) * log_size +
		  (__sync_fetch_and_add(&cpu->n_records, 1) & (log_size - 1));
	struct mt_record *record = bpf_map_lookup_elem(&cpu_logs, &key);

	if (!record)
		return NULL;
	begin_write(&record->time_ns);
	record->tid = tid;
	record->tgid = tgid;
	record->kind = kind;
	record->cpu = bpf_get_smp_processor_id();
	record->syscall = MT_NO_SYSCALL;
	return record;
}

/* by: the other thread; NULL: none. */
static __always_inline void set_by(struct mt_record *record, struct task_struct *by)
{
	record->by_tid = by ? by->pid : 0;
	record->by_tgid = by ? by->tgid : 0;
	if (by)
		bpf_probe_read_kernel(record->by_comm, sizeof(record->by_comm), by->comm);
}

static __always_inline void note(struct mt_cpu *cpu, u32 tgid, u32 tid, struct task_struct *by,
				 u32 kind)
{
	struct mt_record *record = new_record(cpu, tgid, tid, kind);

	if (!record)
		return;
	set_by(record, by);
	end_write(&record->time_ns, bpf_ktime_get_ns());
}

/* Set to 1 if this kernel has quotas (the first), and a clock of stolen time (the second). */
volatile __u32 counts_throttled, counts_stolen;

/* A thread that is ready to run and whose cgroup has used up its quota. */
struct throttled {
	u64 since_ns;
	/* At since_ns: the address of the thread's cfs_rq, and its throttled_clock_self_time. */
	u64 cfs_rq, self_time;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct throttled);
} throttled SEC(".maps");

/*
 * The number of entries in the map, which is searched only if this is not 0. A thread that dies
 * while it waits stays counted.
 */
volatile __u64 n_throttled;

static __always_inline bool counts_self_time(void)
{
	return bpf_core_field_exists(struct cfs_rq, throttled_clock_self_time);
}

static __always_inline u64 self_time(struct cfs_rq *cfs_rq)
{
	return counts_self_time() ? cfs_rq->throttled_clock_self_time : 0;
}

static __always_inline bool has_quotas(void)
{
	return bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	       bpf_core_field_exists(struct cfs_rq, throttle_count);
}

static __always_inline void begin_throttled(struct task_struct *task)
{
	struct throttled begin = {0};
	struct cfs_rq *cfs_rq;
	u32 tid = task->pid;

	if (!has_quotas())
		return;
	cfs_rq = task->se.cfs_rq;
	if (!cfs_rq->throttle_count)
		return;
	begin.cfs_rq = (u64)cfs_rq;
	begin.since_ns = bpf_ktime_get_ns();
	begin.self_time = self_time(cfs_rq);
	if (!bpf_map_update_elem(&throttled, &tid, &begin, BPF_NOEXIST))
		__sync_fetch_and_add(&n_throttled, 1);
}

static __always_inline void note_taken(struct mt_cpu *cpu, struct task_struct *task, u32 kind,
				       u64 ns)
{
	struct mt_record *record = new_record(cpu, task->tgid, task->pid, kind);

	if (!record)
		return;
	set_by(record, NULL);
	record->arg = ns;
	end_write(&record->time_ns, bpf_ktime_get_ns());
}

/*
 * Logs how long the thread was throttled, now that it runs. The wait after the end of the
 * throttling does not count if the kernel has a counter of throttled time for the thread's run
 * queue (since Linux 6.6); otherwise the whole wait counts.
 */
static __always_inline void end_throttled(struct mt_cpu *cpu, struct task_struct *task)
{
	u32 tid = task->pid;
	struct throttled *begin =
		has_quotas() && n_throttled ? bpf_map_lookup_elem(&throttled, &tid) : NULL;
	struct cfs_rq *cfs_rq;
	u64 ns, booked;

	if (!begin)
		return;
	cfs_rq = task->se.cfs_rq;
	ns = bpf_ktime_get_ns() - begin->since_ns;
	booked = (u64)cfs_rq == begin->cfs_rq && counts_self_time()
			 ? self_time(cfs_rq) - begin->self_time
			 : ns;
	if (booked < ns)
		ns = booked;
	/*
	 * ns can be 0 since Linux 6.18: a thread is throttled only on its way to user mode, and may
	 * run until then.
	 */
	if (ns)
		note_taken(cpu, task, MT_RECORD_THROTTLED, ns);
	bpf_map_delete_elem(&throttled, &tid);
	__sync_fetch_and_sub(&n_throttled, 1);
}

static __always_inline u64 stolen_from(struct task_struct *task)
{
	if (!bpf_core_field_exists(struct sched_entity, cfs_rq) ||
	    !bpf_core_field_exists(struct rq, prev_steal_time_rq))
		return 0;
	return task->se.cfs_rq->rq->prev_steal_time_rq;
}

/* Less stolen time is not recorded. */
#define STOLEN_LEAST_NS 500000

/* Logs the time stolen since the thread got the CPU. */
static __always_inline void note_stolen(struct mt_cpu *cpu, struct task_struct *task)
{
	u64 ns = stolen_from(task) - cpu->stolen_ns;

	if (cpu->stolen_ns && ns >= STOLEN_LEAST_NS)
		note_taken(cpu, task, MT_RECORD_STOLEN, ns);
}

static __always_inline void note_what_counts(void)
{
	if (has_quotas() && !counts_throttled)
		counts_throttled = 1;
	if (bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	    bpf_core_field_exists(struct rq, prev_steal_time_rq) && !counts_stolen)
		counts_stolen = 1;
}

/* Logs the thread that runs on `there`, which may be another CPU. */
static __always_inline void note_now(struct mt_cpu *cpu, struct task_struct *task,
				     const struct mt_cpu *there)
{
	struct mt_record *record =
		there->now_tid ? new_record(cpu, task->tgid, task->pid, MT_RECORD_REPLACED) : NULL;

	if (!record)
		return;
	record->by_tid = there->now_tid;
	record->by_tgid = there->now_tgid;
	__builtin_memcpy(record->by_comm, there->now_comm, sizeof(record->by_comm));
	end_write(&record->time_ns, bpf_ktime_get_ns());
}

static __always_inline void set_now(struct mt_cpu *cpu, struct task_struct *now)
{
	cpu->now_tid = now->pid;
	cpu->now_tgid = now->tgid;
	bpf_probe_read_kernel(cpu->now_comm, sizeof(cpu->now_comm), now->comm);
}

/*
 * A thread of the target has the CPU. Some hypervisors run an agent in the guest whose switches and
 * wake-ups no program sees: a thread that gets its CPU back from the agent is noticed by a timed
 * sample, or when it leaves the CPU. Its arrival time is not known then, so it is not logged.
 */
static __always_inline void arrive(struct mt_cpu *cpu, struct task_struct *task)
{
	if (cpu->left_tid == task->pid)
		cpu->left_tid = 0;
	end_throttled(cpu, task);
	cpu->stolen_ns = stolen_from(task);
}

/* include/linux/sched.h */
#define PF_EXITING 0x4
#define PF_KTHREAD 0x200000

/*
 * True if what the thread does in the kernel is its own work: a system call, or its end, which
 * wakes its parent after it has given up its mm (kernel/exit.c: exit_notify).
 */
static __always_inline bool works_for_itself(struct task_struct *task)
{
	return syscall_of(task) || (!(task->flags & PF_KTHREAD) && task->flags & PF_EXITING);
}

/* (struct task_struct *p): the waker is the current one. */
SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0], *current;
	struct mt_cpu *cpu, *last;
	bool is_its;
	u32 key;

	if (!is_target(task) || is_stopped())
		return 0;
	/* The thread will be on the run queue, and may have to wait there. */
	begin_throttled(task);
	cpu = this_cpu();
	if (!cpu)
		return 0;
	current = bpf_get_current_task_btf();
	/* From now on the thread waits for the one that runs on its last CPU. */
	key = cpu_of(task);
	last = bpf_map_lookup_elem(&cpus, &key);
	if (last && last->left_tid == task->pid && !last->left_waits) {
		last->left_waits = 1;
		note_now(cpu, task, last);
	}
	is_its = works_for_itself(current) && !cpu->in_hardirq && !cpu->in_irq_softirq;
	note(cpu, task->tgid, task->pid, is_its ? current : NULL, MT_RECORD_WOKEN);
	return 0;
}

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define SYSCALL_FUTEX 202

/* include/linux/sched.h, include/linux/sched/jobctl.h */
#define TASK_INTERRUPTIBLE 0x1
#define TASK_STOPPED_STATE 0x4
#define TASK_TRACED_STATE  0x8
#define TASK_FROZEN_STATE  0x8000
#define JOBCTL_TRAP_FREEZE (1 << 23)

/*
 * Tells how the thread that leaves the CPU was stopped; 0: it was not stopped. Its registers still
 * have the number of the system call that the stop interrupted. A cgroup freezes threads in a state
 * of their own (v1), or in an interruptible sleep (v2; kernel/signal.c: do_freezer_trap).
 */
static __always_inline u32 stop_of(struct task_struct *task)
{
	u32 state = task->__state;

	if (state & TASK_TRACED_STATE)
		return MT_STOPPED_BY_TRACER;
	if (state & TASK_STOPPED_STATE)
		return MT_STOPPED_BY_SIGNAL;
	if (state & TASK_FROZEN_STATE ||
	    (state & TASK_INTERRUPTIBLE && task->jobctl & JOBCTL_TRAP_FREEZE))
		return MT_FROZEN;
	return 0;
}

/*
 * Stores the system call that the thread is in, or how it was stopped. In glibc's pthread_mutex_t
 * the members are lock, count, owner (struct __pthread_mutex_s). Other locks have another value in
 * the place of the owner: user space uses the value only if it is the tid of another thread of the
 * process.
 */
static __always_inline void set_syscall(struct mt_record *record, struct task_struct *task)
{
	struct pt_regs *regs = syscall_of(task);
	u32 stop = stop_of(task);

	if (stop)
		record->syscall = stop;
	if (stop || !regs)
		return;
	record->syscall = (u32)regs->orig_ax;
	record->arg = regs->di;
	if (record->syscall == SYSCALL_FUTEX)
		bpf_probe_read_user(&record->owner, sizeof(record->owner), (void *)(regs->di + 8));
}

/* The most threads that are logged per wait for a CPU. */
#define REPLACED_MAX 64

/*
 * Logs that `next` runs on the CPU for which left_tid waits. After REPLACED_MAX threads it logs
 * once that the thread there is unknown.
 */
static __always_inline void note_replaced(struct mt_cpu *cpu, struct task_struct *next)
{
	u32 n = cpu->n_replaced++;

	if (n <= REPLACED_MAX)
		note(cpu, cpu->left_tgid, cpu->left_tid, n < REPLACED_MAX ? next : NULL,
		     MT_RECORD_REPLACED);
}

/* include/linux/sched.h */
#define TASK_WAKING 0x200

/* True if left_tid is ready to run, or about to be, and still waits for this CPU. */
static __always_inline bool waits_here(const struct mt_cpu *cpu)
{
	struct task_struct *left = (void *)cpu->left_task;
	struct task_struct___cpu *old = (void *)left;
	u32 tid = 0, state = 1, here = 0;

	bpf_probe_read_kernel(&tid, sizeof(tid), &left->pid);
	bpf_probe_read_kernel(&state, sizeof(state), &left->__state);
	if (bpf_core_field_exists(left->thread_info.cpu))
		bpf_probe_read_kernel(&here, sizeof(here), &left->thread_info.cpu);
	else if (bpf_core_field_exists(old->cpu))
		bpf_probe_read_kernel(&here, sizeof(here), &old->cpu);
	return tid == cpu->left_tid && !(state & ~TASK_WAKING) &&
	       here == bpf_get_smp_processor_id();
}

/*
 * The leaving thread becomes left_tid, unless it blocks while left_tid still waits for this CPU:
 * then left_tid stays, since the threads that run from now on take the CPU from it. If the leaving
 * thread was preempted, it replaces left_tid, and who runs instead of the old left_tid is unknown
 * from now on.
 */
static __always_inline void take_place(struct mt_cpu *cpu, struct task_struct *task,
				       struct task_struct *next, bool is_preempted)
{
	bool has_waiter = cpu->left_tid && cpu->left_waits && cpu->left_tid != task->pid &&
			  cpu->left_tid != next->pid;

	if (has_waiter && !is_preempted && waits_here(cpu)) {
		note_replaced(cpu, next);
		return;
	}
	if (has_waiter)
		note(cpu, cpu->left_tgid, cpu->left_tid, NULL, MT_RECORD_REPLACED);
	cpu->left_tid = task->pid;
	cpu->left_tgid = task->tgid;
	cpu->left_task = (u64)task;
	cpu->left_waits = is_preempted;
	cpu->n_replaced = 0;
}

/* Logs that a thread of the target leaves the CPU to `next`, with its stack and the reason. */
static __always_inline void leave(u64 *ctx, struct mt_cpu *cpu, struct task_struct *task,
				  struct task_struct *next)
{
	bool is_preempted = ctx[0] || !task->__state;
	struct mt_record *record;
	u64 now = bpf_ktime_get_ns();
	u32 stack = 0;

	note_stolen(cpu, task);
	if (!task->__state)
		begin_throttled(task);
	cpu->n_left++;
	if (stacks_size && is_recorded(task->pid))
		stack = write_stack(cpu, task, now);
	take_place(cpu, task, next, is_preempted);
	record = new_record(cpu, task->tgid, task->pid,
			    is_preempted ? MT_RECORD_PREEMPTED : MT_RECORD_BLOCKED);
	if (!record)
		return;
	set_by(record, next);
	record->owner = 0;
	record->stack = stack;
	set_syscall(record, task);
	end_write(&record->time_ns, now);
}

/*
 * Interrupts and softirqs take time from the thread that has the CPU. Interrupts do not nest
 * (kernel/irq/handle.c: handlers run with interrupts off), nor do softirqs; an interrupt within a
 * softirq counts as part of it. So none of the four programs interrupts itself, and while
 * soft_since_ns is set the programs of interrupts count nothing.
 */
static __always_inline void log_interrupts(struct mt_cpu *cpu)
{
	struct mt_record *record = cpu->interrupts_ns
					   ? new_record(cpu, cpu->interrupts_tgid,
							cpu->interrupts_tid, MT_RECORD_INTERRUPTS)
					   : NULL;

	if (record) {
		set_by(record, NULL);
		record->arg = cpu->interrupts_ns;
		record->end_ns = cpu->interrupts_to_ns;
		end_write(&record->time_ns, cpu->interrupts_from_ns);
	}
	cpu->interrupts_ns = 0;
}

static __always_inline void count_interrupt(struct mt_cpu *cpu, u64 since_ns)
{
	u64 now = bpf_ktime_get_ns();

	if (cpu->interrupts_ns && now - cpu->interrupts_from_ns >= MT_INTERRUPTS_STRETCH_NS)
		log_interrupts(cpu);
	if (!cpu->interrupts_ns) {
		cpu->interrupts_from_ns = since_ns;
		/*
		 * in_tid is copied, because other threads get the CPU between the freeze and user
		 * space's reading.
		 */
		cpu->interrupts_tid = cpu->in_tid;
		cpu->interrupts_tgid = cpu->in_tgid;
	}
	cpu->interrupts_to_ns = now;
	cpu->interrupts_ns += now - since_ns;
	if (cpu->interrupts_ns >= MT_INTERRUPTS_NS)
		log_interrupts(cpu);
}

/* Sets the thread that has the CPU, at a switch or a sample, before anything else. */
static __always_inline void set_in(struct mt_cpu *cpu, struct task_struct *task, bool is_target)
{
	if (cpu->in_tid && !is_stopped())
		log_interrupts(cpu);
	cpu->in_tid = is_target ? task->pid : 0;
	cpu->in_tgid = task->tgid;
	cpu->hard_since_ns = cpu->soft_since_ns = 0;
}

/*
 * At the end of an interrupt the kernel runs the pending softirqs at once (kernel/softirq.c:
 * irq_exit_rcu). A thread runs the softirqs that its own system call raised (local_bh_enable), when
 * it sends over loopback for example. A softirq that begins this soon after an interrupt may be
 * either: the thread is not named as the waker.
 */
#define BEHIND_INTERRUPT_NS 5000

static __always_inline void note_interrupt_end(struct mt_cpu *cpu)
{
	if (!is_stopped())
		cpu->interrupt_end_ns = bpf_ktime_get_ns();
}

/* User space attaches these to the interrupt tracepoints that exist. */
SEC("raw_tp")
int on_hard_begin(void *ctx)
{
	struct mt_cpu *cpu = this_cpu();

	if (cpu)
		cpu->in_hardirq = 1;
	if (cpu && cpu->in_tid && !cpu->soft_since_ns && !is_stopped())
		cpu->hard_since_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp")
int on_hard_end(void *ctx)
{
	struct mt_cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	cpu->in_hardirq = 0;
	note_interrupt_end(cpu);
	if (!cpu->hard_since_ns)
		return 0;
	if (!cpu->soft_since_ns && !is_stopped())
		count_interrupt(cpu, cpu->hard_since_ns);
	cpu->hard_since_ns = 0;
	return 0;
}

SEC("raw_tp")
int on_soft_begin(void *ctx)
{
	struct mt_cpu *cpu = this_cpu();

	if (cpu && !is_stopped())
		cpu->in_irq_softirq =
			bpf_ktime_get_ns() - cpu->interrupt_end_ns < BEHIND_INTERRUPT_NS;
	if (cpu && cpu->in_tid && !is_stopped())
		cpu->soft_since_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp")
int on_soft_end(void *ctx)
{
	struct mt_cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	if (cpu->in_irq_softirq)
		note_interrupt_end(cpu);
	cpu->in_irq_softirq = 0;
	if (!cpu->soft_since_ns)
		return 0;
	if (!is_stopped())
		count_interrupt(cpu, cpu->soft_since_ns);
	barrier();
	*(volatile u64 *)&cpu->soft_since_ns = 0;
	return 0;
}

/*
 * (bool preempt, struct task_struct *prev, struct task_struct *next, ...). While a thread of the
 * target is ready to run, all threads that run on its last CPU are logged, until it moves to
 * another CPU: who runs instead of it is unknown from then on.
 */
SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	bool from_target = is_target(prev), to_target = is_target(next), is_unseen;
	struct mt_cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	note_what_counts();
	is_unseen = from_target && cpu->in_tid != prev->pid;
	if (cpu->in_tid || to_target)
		set_in(cpu, next, to_target);
	if (is_stopped())
		return 0;
	if (is_unseen)
		arrive(cpu, prev);
	if (from_target)
		leave(ctx, cpu, prev, next);
	if (cpu->left_tid && next->pid == cpu->left_tid)
		cpu->left_tid = 0;
	if (cpu->left_tid)
		set_now(cpu, next);
	/* A thread that has moved to another CPU does not wait for this one any more. */
	if (cpu->left_tid && cpu->left_waits && !from_target && !waits_here(cpu)) {
		note(cpu, cpu->left_tgid, cpu->left_tid, NULL, MT_RECORD_REPLACED);
		cpu->left_tid = 0;
	}
	if (cpu->left_tid && cpu->left_waits && !from_target)
		note_replaced(cpu, next);
	if (!to_target)
		return 0;
	arrive(cpu, next);
	note(cpu, next->tgid, next->pid, NULL, MT_RECORD_IN);
	return 0;
}

/* (struct task_struct *p, ...): recording of a program that mtbpf runs starts here. */
SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	if (is_target((void *)ctx[0]))
		stopped = 0;
	return 0;
}

/* System calls that take at least this long are logged. */
const volatile __u64 syscall_thresh_ns;

struct begun {
	u64 time_ns; /* 0: none */
	u64 arg;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct begun);
} begun_calls SEC(".maps");

/* (struct pt_regs *regs, long id) */
SEC("tp_btf/sys_enter")
int on_sys_enter(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (void *)ctx[0];
	struct begun *begun;

	if (!is_target(task))
		return 0;
	begun = bpf_task_storage_get(&begun_calls, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!begun)
		return 0;
	begun->arg = regs->di;
	begun->time_ns = bpf_ktime_get_ns();
	return 0;
}

/* (struct pt_regs *regs, long ret) */
SEC("tp_btf/sys_exit")
int on_sys_exit(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (void *)ctx[0];
	struct mt_cpu *cpu = this_cpu();
	struct mt_record *record;
	struct begun *begun;
	u64 now, start;

	if (!is_target(task) || !cpu)
		return 0;
	begun = bpf_task_storage_get(&begun_calls, task, NULL, 0);
	start = begun ? begun->time_ns : 0;
	now = bpf_ktime_get_ns();
	if (!start || now - start < syscall_thresh_ns || is_stopped())
		return 0;
	begun->time_ns = 0;
	record = new_record(cpu, task->tgid, task->pid, MT_RECORD_LONG);
	if (!record)
		return 0;
	set_by(record, NULL);
	record->syscall = (u32)regs->orig_ax;
	record->arg = begun->arg;
	record->end_ns = now;
	end_write(&record->time_ns, start);
	return 0;
}

/* Threads that free memory: the start time by tid. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u64);
} reclaiming SEC(".maps");

/* Shorter reclaim is not recorded. */
#define RECLAIM_LEAST_NS 10000

/* User space attaches these to the tracepoints of reclaim and compaction that exist. */
SEC("raw_tp")
int on_reclaim_begin(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 now = bpf_ktime_get_ns();
	u32 tid = task->pid;

	if (is_target(task) && !is_stopped())
		bpf_map_update_elem(&reclaiming, &tid, &now, BPF_ANY);
	return 0;
}

static __always_inline int end_reclaim(u32 kind)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tid = task->pid;
	u64 *since = is_target(task) ? bpf_map_lookup_elem(&reclaiming, &tid) : NULL;
	u64 start, now = bpf_ktime_get_ns();
	struct mt_cpu *cpu = this_cpu();
	struct mt_record *record;

	if (!since)
		return 0;
	start = *since;
	bpf_map_delete_elem(&reclaiming, &tid);
	if (!cpu || is_stopped() || now - start < RECLAIM_LEAST_NS)
		return 0;
	record = new_record(cpu, task->tgid, tid, MT_RECORD_RECLAIM);
	if (!record)
		return 0;
	set_by(record, NULL);
	record->arg = kind;
	record->end_ns = now;
	end_write(&record->time_ns, start);
	return 0;
}

SEC("raw_tp")
int on_cgroup_reclaim_end(void *ctx)
{
	return end_reclaim(MT_RECLAIM_CGROUP);
}

SEC("raw_tp")
int on_direct_reclaim_end(void *ctx)
{
	return end_reclaim(MT_RECLAIM_MACHINE);
}

SEC("raw_tp")
int on_compaction_end(void *ctx)
{
	return end_reclaim(MT_RECLAIM_COMPACTION);
}

/* Attached per CPU to the timed samples and to page faults. Returning 0 drops the sample. */
SEC("perf_event")
int on_clock(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mt_cpu *cpu = this_cpu();

	if (!is_target(task) || !cpu || is_stopped())
		return 0;
	if (cpu->in_tid != task->pid) {
		set_in(cpu, task, true);
		arrive(cpu, task);
	}
	if (!is_recorded(task->pid))
		return 0;
	cpu->n_clock++;
	return 1;
}

/*
 * Attached per CPU to switches if perf takes their stacks. on_switch() has run already, and counts
 * the switch.
 */
SEC("perf_event")
int on_switch_stack(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return is_target(task) && this_cpu() && !is_stopped() && is_recorded(task->pid);
}
