/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The threads that are in a region: the trigger adds and removes them, the recorder looks them up.
 */
#ifndef MTBPF_OPEN_REGIONS_BPF_H
#define MTBPF_OPEN_REGIONS_BPF_H

#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

/* Else all that runs is recorded. */
const volatile bool has_regions;

/*
 * By tid in the initial pid namespace, and since when. A thread that ends in one leaves it behind:
 * so the oldest make room. User space sizes it as lru_latches; the recorder's is the trigger's.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MT_OPEN_REGIONS);
	__type(key, u32);
	__type(value, struct mt_entry);
} open_regions SEC(".maps");

static __always_inline bool is_recorded(u32 tid)
{
	return !has_regions || bpf_map_lookup_elem(&open_regions, &tid);
}

#endif
