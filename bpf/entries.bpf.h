/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The log of the latest hits of the probe, for sources that do not record calls. */
#ifndef MTBPF_ENTRIES_BPF_H
#define MTBPF_ENTRIES_BPF_H

#include "fire.bpf.h"
#include "latch.bpf.h"
#include "logs.bpf.h"

const volatile bool log_entries;

/* User space maps it. The index is the hit's number, so no two threads write to the same entry. */
struct log_of_entries entry_log SEC(".maps");

/* The thread in which the returning call began; 0: not known, or the call has not returned yet. */
static __always_inline u32 thread_of(const struct passed *passed)
{
	u32 key = passed->sequence % MT_ENTRY_LOG;
	const struct mt_entry *entry = bpf_map_lookup_elem(&entry_log, &key);

	return entry && passed->since_ns && entry->start_ns == passed->since_ns ? entry->tid : 0;
}

/*
 * Logs the call of the thread or goroutine from since_ns to end_ns; if end_ns is 0, a hit at
 * time_ns.
 */
static __always_inline void log_entry(const struct pt_regs *ctx, const struct passed *passed,
				      u64 end_ns)
{
	struct mt_entry *entry;
	u64 began_in = 0;

	if (!log_entries || is_frozen())
		return;
	if (by_goroutine)
		began_in = thread_of(passed);
	entry = begin_entry(&entry_log, passed->sequence, passed->probe_ip);
	if (!entry)
		return;
	entry->end_ns = end_ns;
	entry->kind = passed->place->in_kernel && !passed->place->is_breakpoint ? MT_ENTRY_KERNEL
										: MT_ENTRY_HIT;
	entry->goroutine = by_goroutine ? goroutine_of(ctx) : 0;
	if (by_goroutine)
		entry->goid = goid_of(ctx->r14);
	entry->returns_to = began_in << 8;
	end_write(&entry->start_ns, end_ns ? passed->since_ns : passed->time_ns);
}

#endif
