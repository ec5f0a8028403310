/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The log of entries: the latest hits of the probe, for a source that does not see calls itself. */
#ifndef MTBPF_ENTRIES_BPF_H
#define MTBPF_ENTRIES_BPF_H

#include "fire.bpf.h"
#include "logs.bpf.h"

const volatile bool log_entries;

/* User space maps it. By the hit's number, so that no two threads write the same place at a time.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MT_ENTRY_LOG);
	__type(key, u32);
	__type(value, struct mt_entry);
} entry_log SEC(".maps");

/*
 * end_ns: its return; 0: not known. It began at since_ns, or, at its entry, now. goroutine: whose
 * it is; 0: the thread's.
 */
static __always_inline void log_entry(const struct passed *passed, u64 end_ns, u32 goroutine)
{
	struct mt_entry *entry;

	if (!log_entries || is_frozen())
		return;
	entry = begin_entry(&entry_log, passed->sequence, passed->probe_ip);
	if (!entry)
		return;
	entry->end_ns = end_ns;
	entry->goroutine = goroutine;
	end_write(&entry->start_ns, end_ns ? passed->since_ns : passed->time_ns);
}

#endif
