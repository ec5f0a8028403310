/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Regions: a thread is recorded from its hit of the start probe to its next hit of the stop probe.
 */
#ifndef MTBPF_REGIONS_BPF_H
#define MTBPF_REGIONS_BPF_H

#include "fire.bpf.h"
#include "logs.bpf.h"
#include "open_regions.bpf.h"
#include "syscalls.bpf.h"

/* The latest regions that have ended; user space maps it. */
struct log_of_entries region_log SEC(".maps");

__u64 n_regions;

/*
 * socket: the socket from which the request was read (socket_of()); 0: none. Returns false if the
 * thread is in a region already, which then continues. But if the socket that began the region has
 * been closed since, its request is over without an answer: the region begins again. Some servers
 * read what is left before they close (PHP-FPM), and then wait for the next connection.
 */
static __always_inline bool begin_region(const struct pt_regs *ctx, u64 off_ns, u64 socket)
{
	u32 tid = bpf_get_current_pid_tgid();
	u64 pid_tgid = current_pid_tgid();
	const struct mt_entry *open;
	struct mt_entry region = {
		.start_ns = bpf_ktime_get_ns(),
		.tid = (u32)pid_tgid,
		.tgid = pid_tgid >> 32,
		.ip = ctx->ip,
		.returns_to = off_ns, /* reused to keep off_ns until the region ends */
		.goid = socket,	      /* reused, too */
	};

	if (!bpf_map_update_elem(&open_regions, &tid, &region, BPF_NOEXIST))
		return true;
	open = socket ? bpf_map_lookup_elem(&open_regions, &tid) : NULL;
	if (!open || !is_closed(open->goid))
		return false;
	return !bpf_map_update_elem(&open_regions, &tid, &region, BPF_ANY);
}

/* Logs a region that has ended, unless it began after the freeze: then it was not recorded. */
static __always_inline void log_region(const struct mt_entry *region, u64 end_ns)
{
	volatile struct mt_freezer *freezer = freezer_state();
	struct mt_entry *logged;

	if (freezer && is_frozen() && region->start_ns > freezer->frozen_ns)
		return;
	logged = begin_entry(&region_log, __sync_fetch_and_add(&n_regions, 1), region->ip);
	if (!logged)
		return;
	logged->end_ns = end_ns;
	end_write(&logged->start_ns, region->start_ns);
}

/*
 * Returns the region's start time, and sets *off_ns to off_cpu_ns() at that time; 0: no region is
 * open, or the one that is belongs to a socket whose descriptor has another file now (is_reused()).
 */
static __always_inline u64 end_region(const struct hit_place *place, u64 now, u64 *off_ns)
{
	u32 tid = bpf_get_current_pid_tgid();
	const struct mt_entry *region = bpf_map_lookup_elem(&open_regions, &tid);
	u64 start_ns;

	if (!region)
		return 0;
	start_ns = is_reused(region->goid, place) ? 0 : region->start_ns;
	*off_ns = region->returns_to;
	if (start_ns)
		log_region(region, now);
	bpf_map_delete_elem(&open_regions, &tid);
	return start_ns;
}

#endif
