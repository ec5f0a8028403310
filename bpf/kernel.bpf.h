/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Structs of the kernel, for programs that need its BTF. */
#ifndef MTBPF_KERNEL_BPF_H
#define MTBPF_KERNEL_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>

/* The members that the programs read; libbpf relocates them with the kernel's BTF. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct kernfs_node {
	u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
};

/* Since Linux 6.1; before that, ancestor_ids. */
struct cgroup___ancestors {
	struct cgroup *ancestors[1];
};

struct cgroup___ancestor_ids {
	u64 ancestor_ids[1];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct thread_info {
	u32 cpu;
};

struct rq {
	u64 prev_steal_time_rq; /* with CONFIG_PARAVIRT_TIME_ACCOUNTING */
};

struct cfs_rq {
	struct rq *rq;		       /* with CONFIG_FAIR_GROUP_SCHED, like sched_entity.cfs_rq */
	int throttle_count;	       /* with CONFIG_CFS_BANDWIDTH: throttled ancestors */
	u64 throttled_clock_self_time; /* since Linux 6.6: total throttled time */
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	unsigned long start_stack;
	struct uprobes_state uprobes_state;
};

struct return_instance {
	unsigned long orig_ret_vaddr;
	bool chained;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct thread_struct {
	unsigned long fsbase;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int pid;
	int tgid;
	struct sched_entity se;
	struct mm_struct *mm; /* NULL: a kernel thread */
	struct thread_struct thread;
	struct uprobe_task *utask;
	struct css_set *cgroups;
	unsigned long jobctl;
	char comm[16];
};

/* Before Linux 5.16 the CPU was not in thread_info. */
struct task_struct___cpu {
	unsigned int cpu;
};
#pragma clang attribute pop

#endif
