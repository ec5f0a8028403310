// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * An iterator that writes each thread's place: its user registers, the system call that it is in,
 * and whether it runs. User space reads from it. A separate object, since it needs the kernel's
 * BTF.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel.bpf.h"
#include "mtbpf_shared.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/*
 * The process's tgid, as user space sees it; and the inode of user space's pid namespace, 0: the
 * initial one.
 */
const volatile __u32 wanted_tgid;
const volatile __u32 own_ns_ino;

/* The iterator's context and the members of tasks that only it reads. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct___ids {
	struct pid *thread_pid;
	struct task_struct *group_leader;
	int on_cpu;
	unsigned long nvcsw, nivcsw;
};
#pragma clang attribute pop

/* kernel/pid_namespace.c: MAX_PID_NS_LEVEL */
#define LEVELS 33

/*
 * Returns the tid in user space's pid namespace, or 0 if it has none there. Sets *inner to the tid
 * in the thread's own namespace.
 */
static __always_inline u32 number_of(struct task_struct *task, u32 *inner)
{
	struct pid *pid = BPF_CORE_READ((struct task_struct___ids *)task, thread_pid);
	u32 level = pid ? BPF_CORE_READ(pid, level) : 0,
	    found = own_ns_ino ? 0 : BPF_CORE_READ(task, pid);
	u32 size = bpf_core_type_size(struct upid);
	u64 numbers = (u64)pid + bpf_core_field_offset(struct pid, numbers);

	*inner = BPF_CORE_READ(task, pid);
	if (!pid)
		return found;
	for (u32 i = 0; i < LEVELS && i <= level; i++) {
		struct upid *upid = (void *)(numbers + (u64)i * size);
		u32 nr = BPF_CORE_READ(upid, nr);

		if (own_ns_ino && BPF_CORE_READ(upid, ns, ns.inum) == own_ns_ino)
			found = nr;
		if (i == level)
			*inner = nr;
	}
	return found;
}

static __always_inline void take_regs(struct mt_thread *out, const struct pt_regs *regs)
{
	out->regs[0] = regs->bx;
	out->regs[1] = regs->bp;
	out->regs[2] = regs->sp;
	out->regs[3] = regs->ip;
	out->regs[4] = regs->r12;
	out->regs[5] = regs->r13;
	out->regs[6] = regs->r14;
	out->regs[7] = regs->r15;
	/* The number is -1 after an interrupt. */
	if ((long)regs->orig_ax < 0)
		return;
	out->syscall = (u32)regs->orig_ax;
	out->args[0] = regs->di;
	out->args[1] = regs->si;
	out->args[2] = regs->dx;
}

SEC("iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mt_thread out = {.syscall = MT_NO_SYSCALL};
	struct task_struct___ids *ids = (void *)task;
	struct return_instance *probed;
	struct pt_regs *regs;
	u32 ignored;

	if (!task || !task->mm)
		return 0;
	out.tgid = number_of(BPF_CORE_READ(ids, group_leader), &ignored);
	if (out.tgid != wanted_tgid)
		return 0;
	out.tid = number_of(task, &out.inner_tid);
	out.state = task->__state;
	/*
	 * The member's size differs between kernels, and only this macro reads the right number of
	 * bytes.
	 */
	if (bpf_core_field_exists(ids->on_cpu))
		out.on_cpu = BPF_CORE_READ_BITFIELD_PROBED(ids, on_cpu);
	out.n_switches = BPF_CORE_READ(ids, nvcsw) + BPF_CORE_READ(ids, nivcsw);
	if (bpf_core_field_exists(task->utask)) {
		probed = BPF_CORE_READ(task, utask, return_instances);
		if (probed)
			out.returns_to = BPF_CORE_READ(probed, orig_ret_vaddr);
	}
	bpf_probe_read_kernel(out.comm, sizeof(out.comm), task->comm);
	regs = (void *)bpf_task_pt_regs(task);
	if (regs)
		take_regs(&out, regs);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}
