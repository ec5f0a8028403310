/* SPDX-License-Identifier: MIT */
/*
 * User space's half of the trigger: loads bpf/trigger.bpf.c, attaches it to the uprobe events that
 * user/capture opened, and reads hits and counters.
 */
#ifndef MTBPF_TRIGGER_TRIGGER_H
#define MTBPF_TRIGGER_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/kernel.h"
#include "mtbpf_shared.h"

struct kernel_probe;

struct trigger_trace_places {
	pid_t tgid;
	struct mt_trace_places places;
};

struct trigger_config {
	pid_t tgid; /* the target's pid in the initial pid namespace, or 0 and: */
	/* the pids of several processes; read by trigger__new() only */
	const pid_t *tgids;
	size_t n_tgids;
	bool with_children; /* with tgids: their future children count as well */
	bool of_cgroup;	    /* the target is a cgroup and those below it; tgid, n_tgids 0 */
	int cgroup_fd;	    /* descriptor of its directory in the v2 hierarchy */
	/*
	 * At most one of these is set; if both are 0, every hit triggers. UINT64_MAX: no hit
	 * triggers before trigger__set_threshold().
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
	 * With limits.stall_thresh_ns, alone or with one of these thresholds: what a thread is in
	 * (with count_only: stalls are counted). Needs a clock: trigger__attach_clock().
	 */
	enum mt_stall_from stall_from;
	/* The caller answers questions: mt_hit__is_question(). */
	bool stall_asks;
	/*
	 * The source traces the target with ptrace(2), so a traced thread is not taken for a
	 * stopped one.
	 */
	bool traced_by_us;
	/*
	 * If the last hit of limits.max_hits does not trigger, either it or the first one after
	 * arming is a hit with reason MT_HIT_LAST.
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
	 * key in the same process, not to a thread. All samples pass.
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
	/* The source samples: load the filter of samples and the log of entries. */
	bool sampling;
	/* Log calls of other functions as well: of events with is_also. */
	bool also;
	bool also_at_entry, also_by_insn; /* like probe_at_entry and returns_by_insn, for these */
	bool also_by_goroutine;		  /* like by_goroutine */
	/*
	 * With by_goroutine and also_by_goroutine: at probes of kind TRIGGER_READY, log who makes a
	 * goroutine ready that waits in a call.
	 */
	bool ready;
	struct mt_go_offsets go_offsets; /* all 0: not known; goroutines get no numbers */
	/* The probes that trigger__attach_kernel_probes() will set. Read by trigger__new() only. */
	const struct kernel_probe *kernel_probes;
	size_t n_kernel_probes;
	/*
	 * Some events are kprobes on functions: trigger_event.is_function. Those functions are not
	 * among kernel_probes.
	 */
	bool function_events;
	/* An event of kind TRIGGER_FREEZE freezes for those of kernel_probes. */
	bool freezes_by_call;
	/* The programs are attached by links, not to perf events: see trigger__program(). */
	bool by_links;
	/* Most bytes of the user stack to copy from the stack pointer on; at most MT_COPY_MAX. */
	uint32_t stack_copy;
};

/* Bucket b of the coarse histogram counts values in [2^b, 2^(b+1)) ns; bucket 0 also 0. */
#define MT_HIST_BUCKETS MT_HIST_OCTAVES

/* The counters of all CPUs, added up. */
struct mt_stats {
	uint64_t hits;	     /* of the target */
	uint64_t triggers;   /* passed the threshold while armed */
	uint64_t dropped;    /* triggers lost: the ring buffer was full */
	uint64_t unarmed;    /* passed the threshold, but nothing waited for a trigger */
	uint64_t let_pass;   /* passed the threshold while armed, but not the limits */
	uint64_t unmeasured; /* delay or duration unknown: no room for its start time */
	uint64_t stalls;     /* with count_only: stalls of at least limits.stall_thresh_ns */
	uint64_t evicted;    /* with by_key: requests evicted from the full map */
	uint64_t restarted;  /* with by_key: requests that began again before they ended */
	uint64_t keyless;    /* with by_key: hits whose key could not be read */
	uint64_t missed;     /* times that the kernel did not run the program */
	uint64_t max_ns;     /* largest delay or duration so far */
	uint64_t sum_ns;     /* of all of them */
	uint64_t hist[MT_HIST_BUCKETS];
	uint64_t fine[MT_FINE_BUCKETS]; /* the same values in finer buckets: mtbpf_shared.h */
};

struct trigger;

/*
 * Loads the programs, disarmed. NULL with errno after a message and a hint (for EPERM: the missing
 * capability). -v also prints the verifier's log.
 */
struct trigger *trigger__new(const struct trigger_config *config);
/*
 * Detaches and unloads. The caller keeps its perf events. While attached the trigger also holds
 * them: a probe is removed once both have closed it.
 */
void trigger__free(struct trigger *trigger);

/* True if this config needs a return probe as well as the entry probe. */
bool trigger__needs_return(const struct trigger_config *config);

enum trigger_probe {
	TRIGGER_ENTRY,	/* a hit, or the start of a call */
	TRIGGER_RETURN, /* a return probe, or a probe on a returning instruction */
	TRIGGER_START,	/* start of a region: the program returns 1 unless it has triggered */
	TRIGGER_STOP,	/* end of a region: the program always returns 1 */
	TRIGGER_READY,	/* runtime.ready() of Go: config.ready */
	TRIGGER_FREEZE, /* a kprobe on MT_FREEZE_CALL: the program returns 1 after the trigger */
};

/*
 * A probe in the kernel. `what.roles` has one bit for every kind. System calls, functions and
 * breakpoints have returns, and can begin and end regions; a system call begins one at its return.
 */
struct kernel_probe {
	enum kernel_probe_kind kind; /* for an exit: a system call's; KERNEL_PROBE_NONE: not set */
	char name[128];		     /* "fsync", "tcp_sendmsg", of a tracepoint "sched_switch" */
	int number;		     /* for a system call */
	uint64_t signals;	     /* for a signal: bit n is signal n */
	uint64_t address;	     /* for a breakpoint */
	uint64_t entry, end;	     /* for a breakpoint: the code of its function */
	struct mt_syscall what;
};

/* True if it ends a call or a region. Ends are set first: those of calls that have begun count. */
static inline bool kernel_probe__is_end(const struct kernel_probe *probe)
{
	return probe->what.roles & (MT_ROLE_RETURNS | MT_ROLE_STOPS);
}

struct trigger_event {
	int fd;
	enum trigger_probe kind;
	bool is_function;  /* a kprobe or kretprobe: config.function_events */
	bool is_also;	   /* the function's calls are only logged: config.also */
	uint8_t condition; /* count only if this holds: insn__condition(); 0: always */
	uint32_t probe;	   /* number of its probe among those that count as hits, from 0 */
};

/*
 * Attaches the programs to the events, instead of those attached before. A program's return value
 * filters its event: 0 drops it, 1 lets it happen. Does not enable or disable events. 0, or -errno
 * after a message.
 */
int trigger__attach_all(struct trigger *trigger, const struct trigger_event *events, size_t n);
/*
 * Like trigger__attach_all(), for one probe: an event for its entry and one for its return (-1:
 * none).
 */
int trigger__attach(struct trigger *trigger, int entry_event, int return_event);

/*
 * With config.by_links, used instead of attaching: returns the descriptor of the program for the
 * event and sets the cookie for the link. The trigger owns the descriptor. Open the links for the
 * ends of calls and regions first.
 */
int trigger__program(const struct trigger *trigger, const struct trigger_event *event,
		     uint64_t *cookie);
/* True for the end of a call or region. */
bool trigger_event__is_end(const struct trigger_event *event);

/* The period of the clock that looks for stalls, and so the most that a stall is noticed late. */
uint64_t trigger__stall_period_ns(uint64_t stall_thresh_ns);
/*
 * True for a hit without an arming: a question whether the call of thread `tid` (in the initial pid
 * namespace) that began at time_ns is still open. `ip` is its return address, which was at `sp`. A
 * stall of that call triggers only after trigger__answer().
 */
static inline bool mt_hit__is_question(const struct mt_hit *hit)
{
	return hit->reason == MT_HIT_STALL && !hit->arming;
}
void trigger__answer(struct trigger *trigger, const struct mt_hit *question, bool is_open);
/*
 * With config.limits.stall_thresh_ns: checks the open calls, regions and delays at each overflow of
 * this perf event, until trigger__detach(). The caller keeps the event. 0, or -errno after a
 * message.
 */
int trigger__attach_clock(struct trigger *trigger, int event);
/*
 * Runs the program of a KERNEL_PROBE_BREAKPOINT at each overflow of the event, until
 * trigger__detach(). The caller keeps the event. 0, or -errno after a message.
 */
int trigger__attach_breakpoint(struct trigger *trigger, int event,
			       const struct kernel_probe *probe);
/*
 * Sets probes in the kernel, with or without events, until trigger__detach(). The probes are set
 * for the whole machine; each checks whether the target hit it. 0, or -errno after a message and a
 * hint.
 */
int trigger__attach_kernel_probes(struct trigger *trigger, const struct kernel_probe *all,
				  size_t n);

/* Detaches the programs from all events. */
void trigger__detach(struct trigger *trigger);

/*
 * Arms: the next hit that passes triggers and disarms. A delay or duration that began before does
 * not trigger, since its start was not recorded. 0 or -errno.
 */
int trigger__arm(struct trigger *trigger);
/* Lets samples and entries pass again after a trigger, without arming. */
void trigger__thaw(struct trigger *trigger);
/* Disarms, and drops samples and entries as after a trigger. Hits that pass count as unarmed. */
void trigger__freeze(struct trigger *trigger);

/*
 * Sets the threshold of a trigger that has one, from now on. If the time on or off the CPU is
 * measured, sets that threshold.
 */
void trigger__set_threshold(struct trigger *trigger, uint64_t ns);
/* False after a trigger, until the next trigger__arm(). */
bool trigger__is_armed(const struct trigger *trigger);

/* Readable while a hit is waiting. Owned by the trigger; works across fork(2). */
int trigger__fd(const struct trigger *trigger);

/* Takes the next hit: 1 and *hit, 0 none waiting, or -errno. */
int trigger__next(struct trigger *trigger, struct mt_hit *hit);
/* False if the hit came before the last trigger__arm() or trigger__thaw(). */
bool trigger__is_latest(const struct trigger *trigger, const struct mt_hit *hit);

/*
 * With config.sampling: the program that drops samples after the trigger, for
 * PERF_EVENT_IOC_SET_BPF on any event. Owned by the trigger; -1 without config.sampling.
 */
int trigger__sample_gate(const struct trigger *trigger);

/*
 * With config.sampling: passes the latest MT_ENTRY_LOG hits and, with config.also, as many calls to
 * `take`, unordered. A non-zero result of `take` stops and is returned. 0 or -errno.
 */
int trigger__entries(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *entry), void *ctx);

/* Like trigger__entries(), with config.ready: the latest MT_READY_LOG wake-ups of goroutines. */
int trigger__ready(const struct trigger *trigger,
		   int (*take)(void *ctx, const struct mt_ready *ready), void *ctx);

/*
 * Like trigger__entries(), with config.regions: the latest MT_ENTRY_LOG ended regions and all open
 * ones (end_ns 0).
 */
int trigger__regions(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *region), void *ctx);

/*
 * The copied stack of the last hit that trigger__next() returned: *size bytes from its sp on, or 0.
 * Valid until the next trigger__next().
 */
const uint8_t *trigger__stack(const struct trigger *trigger, size_t *size);

/* With config.also: the number of logged calls plus hits of the probe on runtime.ready(). */
uint64_t trigger__also_calls(const struct trigger *trigger);

/* With config.tgids: passes all processes whose hits count to `take`. 0, or what `take` returns. */
int trigger__each_target(const struct trigger *trigger, int (*take)(void *ctx, pid_t tgid),
			 void *ctx);

/* Sums the counters of all CPUs. 0 or -errno. */
int trigger__stats(const struct trigger *trigger, struct mt_stats *stats);

/* Returns the kind of map that keeps the state of each thread: "task storage" or "LRU hash". */
const char *trigger__latch_name(const struct trigger *trigger);

/* Adds the counters of one to those of another. */
void mt_stats__add(struct mt_stats *sum, const struct mt_stats *stats);
/* The percentile (0-100) of the values, interpolated inside its bucket; 0 without values. */
uint64_t mt_stats__percentile(const struct mt_stats *stats, double percent);

/* True if BPF programs can read the last branches. Needs the right to load programs. */
bool trigger__has_branch_snapshot(void);

/* libbpf's version. */
const char *trigger__library_version(void);

#endif
