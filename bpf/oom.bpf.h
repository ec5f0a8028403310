/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The victim of the OOM killer. The tracepoint runs in the thread that found no free memory; the
 * victim may be another process.
 */
#ifndef MTBPF_OOM_BPF_H
#define MTBPF_OOM_BPF_H

#include "fire.bpf.h"
#include "stall.bpf.h"
#include "targets.bpf.h"
#include "task.bpf.h"

/* The id and depth of the target's cgroup; 0 if the target is not a cgroup. */
const volatile __u64 oom_cgroup_id;
const volatile __u32 oom_cgroup_level;

struct oom_victim {
	u32 tid, tgid;
	struct pt_regs regs; /* as saved at its last entry into the kernel; 0: not known */
};

static __always_inline u64 read_word(u64 at)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const void *)at);
	return word;
}

/* kernel/cgroup/cgroup.c: cgroup_is_descendant() */
static __always_inline bool is_task_in_cgroup(u64 task)
{
	u64 cgroup = read_word(read_word(task + task_at.cgroups) + task_at.css_cgroup), at;

	if (read_task(cgroup, task_at.cgroup_level) < oom_cgroup_level)
		return false;
	at = read_word(cgroup + task_at.cgroup_ancestors + 8ull * oom_cgroup_level);
	return read_word(read_word(at + task_at.cgroup_node) + task_at.node_id) == oom_cgroup_id;
}

/* The saved registers are at the same offset in every kernel stack. */
static __always_inline void read_victim(u64 task, struct oom_victim *victim)
{
	u64 distance = saved_registers() - read_word(bpf_get_current_task() + task_at.stack);

	bpf_probe_read_kernel(&victim->regs, sizeof(victim->regs),
			      (const void *)(read_word(task + task_at.stack) + distance));
}

/*
 * The tracepoint's argument is the victim's struct task_struct, or its pid before Linux 6.9 (stable
 * releases of 2025 have the struct, too). Returns false if the victim does not belong to the
 * target.
 */
static __always_inline bool find_victim(u64 argument, struct oom_victim *victim)
{
	bool is_task = argument >> 63;

	victim->tid = is_task ? read_task(argument, task_at.pid) : argument;
	victim->tgid = is_task ? read_task(argument, task_at.tgid) : argument;
	if (!targets_are_processes() && (!is_task || !is_task_in_cgroup(argument)) &&
	    (is_task || !is_current_in_cgroup()))
		return false;
	if (targets_are_processes() && !is_target_process(victim->tgid))
		return false;
	if (is_task)
		read_victim(argument, victim);
	return true;
}

static __always_inline void fire_victim(const struct oom_victim *victim, struct mt_counters *stats,
					struct passed *passed)
{
	struct mt_hit *hit = claim(stats, passed);

	if (!hit)
		return;
	take_registers(&victim->regs, hit);
	fill_elsewhere(hit, passed);
	hit->tid = victim->tid;
	hit->tgid = victim->tgid;
	hit->stack[0] = victim->regs.ip;
	hit->stack_depth = victim->regs.ip != 0;
	hit->syscall = 0;
	bpf_ringbuf_submit(hit, BPF_RB_FORCE_WAKEUP);
}

#endif
