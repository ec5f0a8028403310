// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * Makes forked children targets from their first instruction on: user space would learn of them too
 * late. A separate object, since it needs the kernel's BTF; user space makes it share target_tgids
 * with trigger.bpf.c.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "targets.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The members that are read here; libbpf relocates them with the kernel's BTF. */
struct task_struct {
	int pid;
	int tgid;
} __attribute__((preserve_access_index));

/* (struct task_struct *parent, struct task_struct *child): the child has not run yet. */
SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	u32 from = parent->tgid, to = child->tgid;
	u8 value = 1;

	if (from != to && bpf_map_lookup_elem(&target_tgids, &from))
		bpf_map_update_elem(&target_tgids, &to, &value, BPF_ANY);
	return 0;
}

/* (struct task_struct *p): its pid can be used again from here on. */
SEC("tp_btf/sched_process_free")
int on_free(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 tgid = task->tgid;

	if (task->pid == task->tgid)
		bpf_map_delete_elem(&target_tgids, &tgid);
	return 0;
}
