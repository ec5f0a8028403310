// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * Who woke a thread of the target, and who took its CPU: perf's own records say when, not who. An
 * object of its own, since it needs the kernel's BTF: samples are good without it.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The members that are read here; where they are libbpf finds out from the kernel's BTF. */
struct task_struct {
	int pid;
	int tgid;
	void *mm; /* NULL: a kernel thread */
	char comm[16];
} __attribute__((preserve_access_index));

const volatile __u32 target_tgid;
/* Set by user space: nothing more is written. */
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

/* The next place of the log, for something about a thread; NULL: nothing is written any more. */
static __always_inline struct mt_sched *new_entry(u32 tid, u32 kind)
{
	struct mt_sched *entry;
	u32 key;

	if (stopped)
		return NULL;
	key = __sync_fetch_and_add(&n_written, 1) % MT_SCHED_LOG;
	entry = bpf_map_lookup_elem(&sched_log, &key);
	if (!entry)
		return NULL;
	entry->time_ns = bpf_ktime_get_ns();
	entry->tid = tid;
	entry->tgid = target_tgid;
	entry->kind = kind;
	return entry;
}

/* `by` NULL: nobody. */
static __always_inline void note(u32 tid, struct task_struct *by, u32 kind)
{
	struct mt_sched *entry = new_entry(tid, kind);

	if (!entry)
		return;
	entry->by_tid = by ? by->pid : 0;
	entry->by_tgid = by ? by->tgid : 0;
	if (by)
		bpf_probe_read_kernel_str(entry->by_comm, sizeof(entry->by_comm), by->comm);
}

/* (struct task_struct *p): the waker is the current one. */
SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0], *current;

	if (task->tgid != target_tgid)
		return 0;
	current = bpf_get_current_task_btf();
	note(task->pid, is_in_syscall(current) ? current : NULL, MT_SCHED_WOKEN);
	return 0;
}

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define SYSCALL_FUTEX 202

/*
 * Why a thread leaves, as far as its registers tell: the system call that it is in. The lock of a
 * pthread_mutex_t is its first member, and its owner the third (glibc and musl agree on neither
 * more nor less); user space believes that only of a thread that it knows.
 */
static __always_inline void note_syscall(struct task_struct *task)
{
	struct mt_sched *entry;
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	if (!is_in_syscall(task))
		return;
	entry = new_entry(task->pid, MT_SCHED_SYSCALL);
	if (!entry)
		return;
	entry->by_tid = entry->by_tgid = 0;
	entry->syscall = (u32)regs->orig_ax;
	entry->in.arg = regs->di;
	entry->in.owner = 0;
	if (entry->syscall == SYSCALL_FUTEX)
		bpf_probe_read_user(&entry->in.owner, sizeof(u32), (void *)(regs->di + 8));
}

/* The target's thread that left this CPU last; 0: it is back, or there was none. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
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
	u32 key = 0, *left = bpf_map_lookup_elem(&left_here, &key);

	if (!left)
		return 0;
	if (prev->tgid == target_tgid) {
		*left = prev->pid;
		note_syscall(prev);
	}
	if (!*left)
		return 0;
	if (next->pid == *left)
		*left = 0;
	else
		note(*left, next, MT_SCHED_REPLACED);
	return 0;
}
