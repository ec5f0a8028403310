/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* What moves on every hit: the counters of this CPU. */
#ifndef MTBPF_COUNTERS_BPF_H
#define MTBPF_COUNTERS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mt_stats);
} counters SEC(".maps");

/* floor(log2(value)), 0 for 0, at most the last bucket. */
static __always_inline u32 histogram_bucket(u64 value)
{
	u32 bucket = 0;

	for (u32 shift = 32; shift; shift /= 2) {
		if (value >> shift) {
			value >>= shift;
			bucket += shift;
		}
	}
	return bucket < MT_HIST_BUCKETS ? bucket : MT_HIST_BUCKETS - 1;
}

/*
 * A uprobe's program can be preempted by another thread's on the same CPU, so even per-CPU
 * counters are added to atomically: uncontended, it is a few nanoseconds.
 */
static __always_inline void add(u64 *counter, u64 value)
{
	__sync_fetch_and_add(counter, value);
}

static __always_inline void add_one(u64 *counter)
{
	add(counter, 1);
}

static __always_inline struct mt_stats *counters_of_cpu(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&counters, &key);
}

/* Retried because of the same preemption; four times in a row does not happen. */
static __always_inline void raise_max(u64 *max, u64 value)
{
	u64 seen = *max;

	for (int i = 0; i < 4 && value > seen; i++) {
		u64 found = __sync_val_compare_and_swap(max, seen, value);

		if (found == seen)
			break;
		seen = found;
	}
}

/* One delay or duration. */
static __always_inline void count_value(struct mt_stats *stats, u64 value)
{
	u32 bucket = histogram_bucket(value);

	raise_max(&stats->max_ns, value);
	add(&stats->sum_ns, value);
	if (bucket < MT_HIST_BUCKETS) /* for the verifier, which lost it */
		add_one(&stats->hist[bucket]);
}

#endif
