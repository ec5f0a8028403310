/* SPDX-License-Identifier: MIT */
/* The configuration of a trigger: the target, the thresholds and limits, and its probes in the
 * kernel.
 */
#ifndef MTBPF_TRIGGER_TRIGGER_CONFIG_H
#define MTBPF_TRIGGER_TRIGGER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/kernel.h"
#include "mtbpf_shared.h"

/*
 * A probe in the kernel. `what.roles` has exactly one bit, in a probe of any kind. System calls,
 * functions and breakpoints have returns. All but the OOM killer can begin and end regions; a
 * system call begins one at its return.
 */
struct kernel_probe {
	enum kernel_probe_kind kind; /* KERNEL_PROBE_NONE: not set. Exits: KERNEL_PROBE_SYSCALL */
	char name[128];		     /* "fsync", "tcp_sendmsg", of a tracepoint "sched_switch" */
	int number;		     /* for a system call */
	uint64_t signals;	     /* for a signal: bit n is signal n */
	uint64_t address;	     /* for a breakpoint */
	uint64_t entry, end;	     /* for a breakpoint: the code of its function */
	struct mt_syscall what;
};

/*
 * True if it ends a call or a region. Ends are set first, so that those of calls that have begun
 * are not missed.
 */
static inline bool kernel_probe__is_end(const struct kernel_probe *probe)
{
	return probe->what.roles & (MT_ROLE_RETURNS | MT_ROLE_STOPS);
}

struct trigger_trace_places {
	pid_t tgid;
	struct mt_trace_places places;
};

struct trigger_config {
	pid_t tgid; /* the target's pid as user space sees it, or 0 and: */
	/* the pids of several processes; read by trigger__new() only */
	const pid_t *tgids;
	size_t n_tgids;
	bool with_children; /* with tgids: their future children count as well */
	bool of_cgroup;	    /* the target is a cgroup and those below it; tgid, n_tgids 0 */
	int cgroup_fd;	    /* descriptor of its directory in the v2 hierarchy */
	/*
	 * At most one of these is set; if both are 0 and no stall threshold is set, every hit
	 * triggers. UINT64_MAX: no hit triggers before trigger__set_threshold().
	 */
	uint64_t delay_thresh_ns;
	uint64_t duration_thresh_ns;
	/*
	 * With one of these thresholds, or with count_only: the part of the time, on a CPU or off
	 * it, that must also reach cpu_thresh_ns and that the counters then count. cpu_thresh_ns
	 * may be UINT64_MAX, as above. Not with since_mark or by_goroutine.
	 */
	enum mt_cpu_measure cpu_measure;
	uint64_t cpu_thresh_ns;
	/*
	 * With limits.stall_thresh_ns, alone or with one of these thresholds: what a thread must be
	 * in for that long (with count_only: stalls are counted). Needs a clock:
	 * trigger__attach_clock().
	 */
	enum mt_stall_from stall_from;
	/*
	 * A stall of a call is first handed on as a question: mt_hit__is_question(). The caller
	 * answers it by trigger__answer(), without which the stall does not trigger.
	 */
	bool stall_asks;
	/*
	 * The source traces the target with ptrace(2), so a traced thread is not taken for a
	 * stopped one.
	 */
	bool traced_by_us;
	/*
	 * Hit number limits.max_hits has reason MT_HIT_LAST if it does not trigger otherwise. If it
	 * does, or comes while not armed, the first hit after the next arming has that reason.
	 */
	struct mt_limits limits;
	bool count_only;     /* `watch`: only counts; no hit triggers */
	bool watch_duration; /* count durations instead of delays, with count_only */
	/* Measure durations from mtbpf_mark_start(): the probe is in mtbpf_hit() of mtbpf.h. */
	bool since_mark;
	uint64_t mark_offset_ns; /* the target's CLOCK_MONOTONIC minus ours */
	/*
	 * Conditions (-if): hits, or with MT_FIELD_RETVAL calls, that do not meet all of them do
	 * not count. Read by trigger__new() only.
	 */
	const struct mt_term *terms;
	uint32_t n_terms;
	/*
	 * The arguments to read at a hit, by number of the probe; NULL: none. Read by
	 * trigger__new() only.
	 */
	const struct mt_args *args;
	uint32_t n_args;
	/*
	 * Processes whose threads have a trace id in a variable, at most MT_TRACED_MAX. Read by
	 * trigger__new() only.
	 */
	const struct trigger_trace_places *trace_places;
	uint32_t n_trace_places;
	/*
	 * The values of the terms, the key and the prints, by number of the probe; then those of
	 * the start probes. Read by trigger__new() only.
	 */
	const struct mt_reads *reads;
	uint32_t n_reads, n_prints;
	/*
	 * Delays, and with stop_triggers the times from start to stop, belong to hits with the same
	 * key in the same process, not to a thread. Regions do not filter samples.
	 */
	bool by_key;
	/*
	 * Like probe_site.at_entry: at a hit, [sp] is the return address, which the stack walk
	 * needs.
	 */
	bool probe_at_entry;
	bool conditional_entries; /* some events have a condition: trigger_event.condition */
	/* Returning instructions are probed instead of setting return probes. */
	bool returns_by_insn;
	/* With returns_by_insn: calls belong to Go's goroutines, not to threads. */
	bool by_goroutine;
	/*
	 * Probes start and stop regions of a thread. Samples outside of regions are dropped. With
	 * stop_triggers the end of a region is a hit, and its duration is the region's length.
	 */
	bool regions, stop_triggers;
	/* With regions: Intel PT is not paused and resumed; the end of a region only triggers. */
	bool only_measured;
	/* Read the last branches at a trigger; perf events must have turned LBR on. */
	bool branches;
	/* For -source sample: load the filter of samples and the log of entries. */
	bool sampling;
	/* Log calls of other functions as well: of events with is_also. */
	bool also;
	bool also_at_entry, also_by_insn; /* like probe_at_entry and returns_by_insn, for these */
	bool also_by_goroutine;		  /* like by_goroutine */
	/*
	 * With by_goroutine: log the waits of goroutines in calls that are measured, and who ends
	 * them, by the probes of the kinds TRIGGER_GO_...
	 */
	bool go_waits;
	struct mt_go_offsets go_offsets; /* all 0: not known; goroutines get no numbers */
	/* The probes that trigger__attach_kernel_probes() will set. Read by trigger__new() only. */
	const struct kernel_probe *kernel_probes;
	size_t n_kernel_probes;
	/*
	 * Some events are kprobes on functions: trigger_event.is_function. Those functions are not
	 * among kernel_probes.
	 */
	bool function_events;
	/* An event of kind TRIGGER_FREEZE freezes at hits of kernel_probes. */
	bool freezes_by_call;
	/* The programs are attached by links, not to perf events: see trigger__program(). */
	bool by_links;
	/* Most bytes of the user stack to copy from the stack pointer on; at most MT_COPY_MAX. */
	uint32_t stack_copy;
};

#endif
