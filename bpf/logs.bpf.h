/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Writing to a log that user space may read meanwhile: an entry's time is 0 while the rest of it is
 * written. x86 keeps the order of stores, and this keeps the compiler's.
 */
#ifndef MTBPF_LOGS_BPF_H
#define MTBPF_LOGS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"
#include "pid_namespace.bpf.h"

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
 * The place of number n in a log of MT_ENTRY_LOG entries, where it says who runs here, and at which
 * probe. It counts from end_write() on, with its time; NULL: there is no such log.
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
