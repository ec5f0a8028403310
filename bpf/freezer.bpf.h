/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The trigger freezes the recording with one write, after which no program on any CPU writes. */
#ifndef MTBPF_FREEZER_BPF_H
#define MTBPF_FREEZER_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

/* User space maps it, and makes the recorder use the trigger's map. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mt_freezer);
} freezer SEC(".maps");

static __always_inline volatile struct mt_freezer *freezer_state(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&freezer, &key);
}

static __always_inline bool is_frozen(void)
{
	volatile struct mt_freezer *state = freezer_state();

	return state && state->frozen && state->frozen == state->arming;
}

#endif
