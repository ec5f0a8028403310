/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Writes to logs that user space may read at the same time: an entry's time is 0 while the rest is
 * written. x86 keeps stores in order; the barriers stop the compiler from moving them.
 */
#ifndef MTBPF_LOGS_BPF_H
#define MTBPF_LOGS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"
#include "pid_namespace.bpf.h"

/* A log that user space maps. */
struct log_of_entries {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MT_ENTRY_LOG);
	__type(key, u32);
	__type(value, struct mt_entry);
};

static __always_inline void begin_write(__u64 *time_ns)
{
	*(volatile __u64 *)time_ns = 0;
	barrier();
}

static __always_inline void end_write(__u64 *time_ns, __u64 value)
{
	barrier();
	*(volatile __u64 *)time_ns = value;
}

/*
 * Entry n of a log of MT_ENTRY_LOG entries, with the current thread and the probe filled in. It is
 * valid after end_write(), which sets its time. NULL: there is no such log.
 */
static __always_inline struct mt_entry *begin_entry(void *log, u64 n, u64 ip)
{
	u32 key = n % MT_ENTRY_LOG;
	struct mt_entry *entry = bpf_map_lookup_elem(log, &key);
	u64 pid_tgid;

	if (!entry)
		return NULL;
	pid_tgid = current_pid_tgid();
	begin_write(&entry->start_ns);
	entry->ip = ip;
	entry->tid = (u32)pid_tgid;
	entry->tgid = pid_tgid >> 32;
	entry->goid = 0;
	return entry;
}

#endif
