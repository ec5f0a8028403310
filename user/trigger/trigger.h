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
	pid_t tgid; /* hits of this process count (its pid in the initial pid namespace); or: */
	/* hits of several processes, with tgid 0; read by trigger__new() only; or: */
	const pid_t *tgids;
	size_t n_tgids;
	bool with_children; /* with tgids: their future children count as well */
	bool of_cgroup;	    /* hits of a cgroup and those below it, with tgid and n_tgids 0 */
	int cgroup_fd;	    /* its directory in the v2 hierarchy */
	/*
	 * At most one of the two is set; both 0: every hit triggers. UINT64_MAX: no hit triggers
	 * before trigger__set_threshold().
	 */
	uint64_t delay_thresh_ns;
	uint64_t duration_thresh_ns;
	/*
	 * With one of them, or with count_only: judged, beside that, by the part of the time that
	 * the thread was on a CPU, or off it; that part is what counters have then. UINT64_MAX: as
	 * above. Not with since_mark, nor by_goroutine.
	 */
	enum mt_cpu_measure cpu_measure;
	uint64_t cpu_thresh_ns;
	/*
	 * Beside one of them, or alone: who has been in what stall_from says for so long, and still
	 * is, triggers, or, with count_only, is counted. 0: nobody. It takes a clock:
	 * trigger__attach_clock().
	 */
	uint64_t stall_thresh_ns;
	enum mt_stall_from stall_from;
	/* The caller answers questions: mt_hit__is_question(). */
	bool stall_asks;
	/* The source traces the target with ptrace(2): nobody else does, and that is no stop. */
	bool traced_by_us;
	/*
	 * Limits for hits that pass the threshold; 0: no limit. No trigger within after_ns of the
	 * first trigger__arm(), nor within min_interval_ns of the last trigger; of the hits that
	 * remain, the first n_skipped do not trigger.
	 */
	uint64_t after_ns, min_interval_ns, n_skipped;
	/*
	 * Stop after this many hits (durations: returned calls); 0: no limit. If the last one does
	 * not trigger, it, or the next one once armed, is a hit with reason MT_HIT_LAST.
	 */
	uint64_t max_hits;
	bool count_only;     /* `watch`: only counts; no hit triggers */
	bool watch_duration; /* count durations instead of delays, with count_only */
	/* Measure durations from mtbpf_mark_start(): the probe is in mtbpf_hit() of mtbpf.h. */
	bool since_mark;
	uint64_t mark_offset_ns; /* what the target's CLOCK_MONOTONIC is ahead of ours */
	/* Hits, and with RETVAL calls, of which they are not true do not count. Not kept. */
	const struct mt_term *terms;
	uint32_t n_terms;
	/* What is read at a hit, by the number of the probe. None: nothing. Not kept. */
	const struct mt_args *args;
	uint32_t n_args;
	/* Processes that say which trace a thread works for, at most MT_TRACED_MAX. Not kept. */
	const struct trigger_trace_places *trace_places;
	uint32_t n_trace_places;
	/* What the terms, the key and the prints are; then those of the start probes. Not kept. */
	const struct mt_reads *reads;
	uint32_t n_reads, n_prints;
	/*
	 * Delays, and with stop_triggers the times from start to stop, belong to what has the same
	 * key in the same process, and not to a thread. All samples pass.
	 */
	bool by_key;
	/* As probe_site.at_entry: [sp] at a hit is the return address, which the stack needs. */
	bool probe_at_entry;
	bool conditional_entries; /* some events have a condition: trigger_event.condition */
	/* Returning instructions are probed; there are no return probes. */
	bool returns_by_insn;
	/* With returns_by_insn: calls belong to Go's goroutines, not to threads. */
	bool by_goroutine;
	/*
	 * Probes start and stop regions of a thread. Samples outside of regions are dropped. With
	 * stop_triggers the end of a region is the hit, and its duration is the region's length.
	 */
	bool regions, stop_triggers;
	/* Read the last branches at a trigger; perf events must have turned LBR on. */
	bool branches;
	/* The source samples: load the filter of samples and the log of entries. */
	bool sampling;
	/* Log calls of other functions as well: of events with is_also. */
	bool also;
	bool also_at_entry, also_by_insn; /* like probe_at_entry and returns_by_insn, for these */
	bool also_by_goroutine;		  /* like by_goroutine */
	/*
	 * With by_goroutine and also_by_goroutine: log who makes a goroutine ready that waits in a
	 * call, at the probes of kind TRIGGER_READY.
	 */
	bool ready;
	struct mt_go_offsets go_offsets; /* all 0: goroutines have no numbers */
	/* The probes that trigger__attach_kernel_probes() will set. Not kept. */
	const struct kernel_probe *kernel_probes;
	size_t n_kernel_probes;
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
	uint64_t unmeasured; /* there was no room for what their delay or duration is known by */
	uint64_t stalls;     /* with count_only: of at least stall_thresh_ns */
	uint64_t evicted;    /* with by_key: requests that there was no room for any more */
	uint64_t restarted;  /* with by_key: that began again before they had ended */
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
};

/*
 * A probe in the kernel. `what.roles` has one bit, whatever the kind: only system calls and
 * functions return, and only system calls begin and end regions, the former where they return.
 */
struct kernel_probe {
	enum kernel_probe_kind kind; /* of an exit: a system call; KERNEL_PROBE_NONE: it is none */
	char name[128];		     /* "fsync", "tcp_sendmsg", of a tracepoint "sched_switch" */
	int number;		     /* of a system call */
	uint64_t signals;	     /* of a signal: bit n is signal n */
	uint64_t address;	     /* of a breakpoint */
	struct mt_syscall what;
};

struct trigger_event {
	int fd;
	enum trigger_probe kind;
	bool is_also;	   /* the function's calls are only logged: config.also */
	uint8_t condition; /* count only if this holds: insn__condition(); 0: always */
	uint32_t probe;	   /* number of its probe among those that count as hits, from 0 */
};

/*
 * Attaches the programs to the events, in place of those attached before. A program's return value
 * filters its event: 0 drops it, 1 lets it happen. Enables and disables no event. 0, or -errno
 * after a message.
 */
int trigger__attach_all(struct trigger *trigger, const struct trigger_event *events, size_t n);
/* The same for one probe with an event for its entry and one for its return (-1: none). */
int trigger__attach(struct trigger *trigger, int entry_event, int return_event);

/*
 * With config.by_links, instead of attaching: returns the descriptor of the program for the event,
 * which stays the trigger's, and sets the cookie for the link. Open links for the ends of calls and
 * regions first.
 */
int trigger__program(const struct trigger *trigger, const struct trigger_event *event,
		     uint64_t *cookie);
/* True for the end of a call or region. */
bool trigger_event__is_end(const struct trigger_event *event);

/* How often a clock has to look for stalls: so late a stall is noticed, at most. */
uint64_t trigger__stall_period_ns(uint64_t stall_thresh_ns);
/*
 * What trigger__next() gives with no arming is a question: whether the call of thread `tid`, in the
 * initial pid namespace, which began at time_ns, is still open; its return address, ip, stood at
 * sp. No stall of it triggers before it is answered, or if it is not.
 */
static inline bool mt_hit__is_question(const struct mt_hit *hit)
{
	return hit->reason == MT_HIT_STALL && !hit->arming;
}
void trigger__answer(struct trigger *trigger, const struct mt_hit *question, bool is_open);
/*
 * With config.stall_thresh_ns: looks at what is not over yet at each overflow of this perf event,
 * which stays the caller's, until it lets go of its events. 0, or -errno after a line.
 */
int trigger__attach_clock(struct trigger *trigger, int event);
/*
 * Runs the program of a KERNEL_PROBE_BREAKPOINT with this number at each overflow of the event,
 * which stays the caller's, until trigger__detach(). 0, or -errno after a message.
 */
int trigger__attach_breakpoint(struct trigger *trigger, int event, uint32_t probe);
/*
 * Beside events, or without: sets probes in the kernel, until trigger__detach(). They are set for
 * the whole machine, and each looks whether it is hit by the target. 0, or -errno after a message
 * and a hint.
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
/*
 * Disarms, and drops samples and entries as after a trigger. Hits that pass are counted as unarmed.
 */
void trigger__freeze(struct trigger *trigger);

/* From now on; for a trigger that has a threshold: of the time on or off the CPU, if that is
 * measured. */
void trigger__set_threshold(struct trigger *trigger, uint64_t ns);
/* False after a trigger until it is armed again. */
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

/* The same with config.ready for the latest MT_READY_LOG wake-ups of goroutines. */
int trigger__ready(const struct trigger *trigger,
		   int (*take)(void *ctx, const struct mt_ready *ready), void *ctx);

/* The same with config.regions for the latest MT_ENTRY_LOG ended regions and all open ones (end_ns
 * 0). */
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

/* Where the state of each thread is kept: "task storage" or "LRU hash". */
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
