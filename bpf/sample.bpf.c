// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * Who woke a thread of the target, and who took its CPU: perf's own records say when, not who. An
 * object of its own, since it needs the kernel's BTF: samples are good without it.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "logs.bpf.h"
#include "mtbpf_shared.h"
#include "targets.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The members that are read here; where they are libbpf finds out from the kernel's BTF. */
struct task_struct {
	int pid;
	int tgid;
	void *mm; /* NULL: a kernel thread */
	char comm[16];
} __attribute__((preserve_access_index));

/* The cgroup's threads that have left a CPU: only of the current one can its cgroup be asked. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u8);
} members SEC(".maps");

/* Of another task than the current one. */
static __always_inline bool is_target(struct task_struct *task)
{
	u32 tid = task->pid;

	if (targets_are_processes())
		return is_target_process(task->tgid);
	return bpf_map_lookup_elem(&members, &tid) != NULL;
}

static __always_inline bool is_current_target(struct task_struct *current)
{
	u32 tid = current->pid;
	u8 value = 1;

	if (targets_are_processes())
		return is_target_process(current->tgid);
	if (!is_current_in_cgroup())
		return false;
	bpf_map_update_elem(&members, &tid, &value, BPF_ANY);
	return true;
}

/* Set by user space: nothing more is written, until it is cleared. */
volatile __u32 stopped;
/* How many have been written. */
__u64 n_written;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MT_SCHED_LOG);
	__type(key, u32);
	__type(value, struct mt_sched);
} sched_log SEC(".maps");

/*
 * The current task is the waker only if the waking is its own doing, and not that of an interrupt
 * that came while it ran: then it has entered the kernel by a system call (arch/x86/entry: orig_ax
 * is its number, and -1 for interrupts). An interrupt within a system call is not told apart.
 */
static __always_inline bool is_in_syscall(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	return task->mm && regs && (long)regs->orig_ax >= 0;
}

/*
 * The next place of the log, for something about a thread; NULL: nothing is written any more. It
 * counts from end_write() on, with its time.
 */
static __always_inline struct mt_sched *new_entry(u32 tgid, u32 tid, u32 kind)
{
	struct mt_sched *entry;
	u32 key;

	if (stopped)
		return NULL;
	key = __sync_fetch_and_add(&n_written, 1) % MT_SCHED_LOG;
	entry = bpf_map_lookup_elem(&sched_log, &key);
	if (!entry)
		return NULL;
	begin_write(&entry->time_ns);
	entry->tid = tid;
	entry->tgid = tgid;
	entry->kind = kind;
	return entry;
}

/* `by` NULL: nobody. */
static __always_inline void note(u32 tgid, u32 tid, struct task_struct *by, u32 kind)
{
	u64 now = bpf_ktime_get_ns();
	struct mt_sched *entry = new_entry(tgid, tid, kind);

	if (!entry)
		return;
	entry->by_tid = by ? by->pid : 0;
	entry->by_tgid = by ? by->tgid : 0;
	if (by)
		bpf_probe_read_kernel_str(entry->by_comm, sizeof(entry->by_comm), by->comm);
	end_write(&entry->time_ns, now);
}

/* (struct task_struct *p): the waker is the current one. */
SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0], *current;

	if (!is_target(task))
		return 0;
	current = bpf_get_current_task_btf();
	note(task->tgid, task->pid, is_in_syscall(current) ? current : NULL, MT_SCHED_WOKEN);
	return 0;
}

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define SYSCALL_FUTEX 202

/*
 * Why a thread leaves, as far as its registers tell: the system call that it is in. Of
 * glibc's pthread_mutex_t the lock is the first member, and the owner lies behind it and a counter
 * (struct __pthread_mutex_s). What lies there of other locks user space believes only where it is
 * the number of another thread of the process.
 */
static __always_inline void note_syscall(struct task_struct *task)
{
	struct mt_sched *entry;
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	u64 now = bpf_ktime_get_ns();

	if (!is_in_syscall(task))
		return;
	entry = new_entry(task->tgid, task->pid, MT_SCHED_SYSCALL);
	if (!entry)
		return;
	entry->by_tid = entry->by_tgid = 0;
	entry->syscall = (u32)regs->orig_ax;
	entry->in.arg = regs->di;
	entry->in.owner = 0;
	if (entry->syscall == SYSCALL_FUTEX)
		bpf_probe_read_user(&entry->in.owner, sizeof(u32), (void *)(regs->di + 8));
	end_write(&entry->time_ns, now);
}

struct left {
	u32 tgid, tid;
};

/* System calls of at least that are noted. */
const volatile __u64 syscall_thresh_ns;

struct begun {
	u64 time_ns; /* 0: none has */
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

	if (!is_current_target(task))
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
	struct mt_sched *entry;
	struct begun *begun;
	u64 now, start;

	if (!is_current_target(task))
		return 0;
	begun = bpf_task_storage_get(&begun_calls, task, NULL, 0);
	start = begun ? begun->time_ns : 0;
	now = bpf_ktime_get_ns();
	if (!start || now - start < syscall_thresh_ns)
		return 0;
	begun->time_ns = 0;
	entry = new_entry(task->tgid, task->pid, MT_SCHED_LONG);
	if (!entry)
		return 0;
	entry->by_tid = entry->by_tgid = 0;
	entry->syscall = (u32)regs->orig_ax;
	entry->took.arg = begun->arg;
	entry->took.end_ns = now;
	end_write(&entry->time_ns, start);
	return 0;
}

/* The target's thread that left this CPU last; tid 0: it is back, or there was none. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct left);
} left_here SEC(".maps");

/*
 * (bool preempt, struct task_struct *prev, struct task_struct *next, ...): not only who comes next,
 * but all who run there until it is back. One that goes on elsewhere meanwhile is not looked after:
 * user space knows that it runs.
 */
SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct left *left;
	u32 key = 0;

	left = bpf_map_lookup_elem(&left_here, &key);
	if (!left)
		return 0;
	if (is_current_target(prev)) {
		left->tid = prev->pid;
		left->tgid = prev->tgid;
		note_syscall(prev);
	}
	if (!left->tid)
		return 0;
	if (next->pid == left->tid)
		left->tid = 0;
	else
		note(left->tgid, left->tid, next, MT_SCHED_REPLACED);
	return 0;
}
