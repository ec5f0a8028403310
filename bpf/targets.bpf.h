/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Decides whether a task is a target: one process, several processes, or a cgroup. */
#ifndef MTBPF_TARGETS_BPF_H
#define MTBPF_TARGETS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

const volatile __u32 target_tgid; /* 0: target_tgids or target_cgroups decide */
const volatile bool of_several;

/* Several processes, by tgid: user space fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MT_TARGETS_MAX);
	__type(key, u32);
	__type(value, u8);
} target_tgids SEC(".maps");

/* A kernel without cgroups has no such map: user space creates it only if it is used. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} target_cgroups SEC(".maps");

/* True if the target is one or several processes; false if it is a cgroup. */
static __always_inline bool targets_are_processes(void)
{
	return target_tgid || of_several;
}

/* Valid only if targets are processes. */
static __always_inline bool is_target_process(u32 tgid)
{
	if (target_tgid)
		return tgid == target_tgid;
	return bpf_map_lookup_elem(&target_tgids, &tgid) != NULL;
}

/* Valid only if the target is a cgroup. The helper works for the current task only. */
static __always_inline bool is_current_in_cgroup(void)
{
	return bpf_current_task_under_cgroup(&target_cgroups, 0) == 1;
}

#endif
