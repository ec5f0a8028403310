/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The counters that each hit updates, per CPU. */
#ifndef MTBPF_COUNTERS_BPF_H
#define MTBPF_COUNTERS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mt_counters);
} counters SEC(".maps");

/*
 * floor(log2(value)), 0 for 0: sets all bits below the highest one and counts them. There are no
 * branches, because the verifier would follow all that comes after once for each result.
 */
static __always_inline u32 log2_of(u64 value)
{
	for (u32 shift = 1; shift < 64; shift *= 2)
		value |= value >> shift;
	value >>= 1;
	value -= value >> 1 & 0x5555555555555555;
	value = (value & 0x3333333333333333) + (value >> 2 & 0x3333333333333333);
	value = (value + (value >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return value * 0x0101010101010101 >> 56;
}

static __always_inline u32 fine_bucket(u64 value)
{
	u32 octave = log2_of(value), shift;

	if (value < MT_HIST_SUBS)
		return value;
	if (octave >= MT_HIST_OCTAVES)
		return MT_FINE_BUCKETS - 1;
	shift = octave - MT_HIST_SUB_BITS;
	return (shift + 1) * MT_HIST_SUBS + (value >> shift & (MT_HIST_SUBS - 1));
}

/*
 * Another thread's program can preempt a uprobe's program on the same CPU, so even per-CPU counters
 * need atomic additions, which take a few nanoseconds without contention.
 */
static __always_inline void add(u64 *counter, u64 value)
{
	__sync_fetch_and_add(counter, value);
}

static __always_inline void add_one(u64 *counter)
{
	add(counter, 1);
}

static __always_inline struct mt_counters *counters_of_cpu(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&counters, &key);
}

/*
 * Tries again if another thread's program has preempted this one, which does not happen four times
 * in a row.
 */
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

/* Counts one delay or duration. */
static __always_inline void count_value(struct mt_counters *stats, u64 value)
{
	u32 bucket = fine_bucket(value);

	raise_max(&stats->max_ns, value);
	add(&stats->sum_ns, value);
	if (bucket < MT_FINE_BUCKETS) /* the verifier lost the bound; state it again */
		add_one(&stats->fine[bucket]);
}

#endif
