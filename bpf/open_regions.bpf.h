/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The threads in a region. The trigger adds and removes them, and the recorder looks them up. */
#ifndef MTBPF_OPEN_REGIONS_BPF_H
#define MTBPF_OPEN_REGIONS_BPF_H

#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

/* True if only regions are recorded; otherwise everything is. */
const volatile bool has_regions;

/*
 * Key: tid in the initial pid namespace. A thread that exits inside a region leaves its entry
 * behind, so the oldest entries are evicted. User space sizes it like lru_latches; trigger and
 * recorder share it.
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
