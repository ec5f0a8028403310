/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Measures how long threads were off the CPU, so that a call, a region or a delay can be judged by
 * its time on the CPU, or off it. A program at every context switch counts for the threads that
 * have hit the probe.
 */
#ifndef MTBPF_OFF_CPU_BPF_H
#define MTBPF_OFF_CPU_BPF_H

#include "counters.bpf.h"
#include "task.bpf.h"

const volatile __u32 cpu_measure; /* enum mt_cpu_measure */
/* Least measured time of a hit that passes. User space may change it at any time. */
volatile __u64 cpu_threshold_ns;

struct off_cpu {
	u64 ns;	     /* total since the thread's first hit */
	u64 left_ns; /* when it left its CPU; 0: it is on a CPU */
};

/* By tid in the initial pid namespace. User space sizes it as lru_latches. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct off_cpu);
} off_cpus SEC(".maps");

#define OFF_CPU_UNKNOWN (~0ull)

/* The current thread's time off the CPU since its first hit. OFF_CPU_UNKNOWN: the map was full. */
static __always_inline u64 off_cpu_ns(void)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct off_cpu none = {}, *off;

	if (!cpu_measure)
		return 0;
	off = bpf_map_lookup_elem(&off_cpus, &tid);
	if (off)
		return off->ns;
	return bpf_map_update_elem(&off_cpus, &tid, &none, BPF_ANY) ? OFF_CPU_UNKNOWN : 0;
}

/* Called while the leaving thread is still the current one. */
static __always_inline void note_switch(u64 next, u64 now)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct off_cpu *off = tid ? bpf_map_lookup_elem(&off_cpus, &tid) : NULL;

	if (off)
		off->left_ns = now;
	tid = read_task(next, task_at.pid);
	off = tid ? bpf_map_lookup_elem(&off_cpus, &tid) : NULL;
	if (!off || !off->left_ns)
		return;
	if (now > off->left_ns)
		off->ns += now - off->left_ns;
	off->left_ns = 0;
}

/*
 * Counts a time, or the measured part of it (then sets *off_ns to the time off the CPU). Returns
 * true if it passes its threshold. off_before_ns is what off_cpu_ns() returned when the time began.
 */
static __always_inline bool count_time(struct mt_counters *stats, u64 value_ns, u64 off_before_ns,
				       u64 threshold_ns, u64 *off_ns)
{
	u64 now = off_cpu_ns(), measured;

	if (!cpu_measure) {
		count_value(stats, value_ns);
		return value_ns >= threshold_ns;
	}
	/* A new entry after an eviction begins at 0. */
	if (off_before_ns == OFF_CPU_UNKNOWN || now == OFF_CPU_UNKNOWN || now < off_before_ns) {
		add_one(&stats->unmeasured);
		return false;
	}
	*off_ns = now - off_before_ns;
	if (*off_ns > value_ns)
		*off_ns = value_ns;
	measured = cpu_measure == MT_CPU_OFF ? *off_ns : value_ns - *off_ns;
	count_value(stats, measured);
	return measured >= cpu_threshold_ns && value_ns >= threshold_ns;
}

#endif
