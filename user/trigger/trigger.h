/* SPDX-License-Identifier: MIT */
/*
 * The BPF side: loads bpf/trigger.bpf.c, attaches it to uprobe perf events that user/capture
 * opened, and reads hits and counters. The only user of the skeleton.
 */
#ifndef MTBPF_TRIGGER_TRIGGER_H
#define MTBPF_TRIGGER_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mtbpf_shared.h"

struct trigger_syscall;

struct trigger_config {
	pid_t tgid; /* only hits of this process count, in the initial pid namespace, ... */
	/* ... or those of several, and tgid is 0; read while it loads */
	const pid_t *tgids;
	size_t n_tgids;
	bool with_children; /* of tgids: what they fork from now on counts as well */
	bool of_cgroup;	    /* ... or those of a cgroup, and both are 0 */
	int cgroup_fd;	    /* its directory, of the v2 hierarchy; what is below counts too */
	/*
	 * At most one of the two; both 0: every hit triggers. UINT64_MAX: nothing does, until
	 * trigger__set_threshold().
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
	 * Limits of what passes the threshold; 0: none. Not within after_ns of the first
	 * trigger__arm(); at least min_interval_ns after the last trigger; and not the first
	 * n_skipped of what is left.
	 */
	uint64_t after_ns, min_interval_ns, n_skipped;
	/*
	 * So many hits are looked at, or calls that have returned; the last of them, or the next
	 * once armed, gives a hit of reason MT_HIT_LAST where it is no trigger. 0: no end.
	 */
	uint64_t max_hits;
	bool count_only;     /* `watch`: counters move, nothing ever triggers */
	bool watch_duration; /* count durations instead of delays, with count_only */
	/* Durations are since mtbpf_mark_start(): the probe is on mtbpf_hit() of mtbpf.h. */
	bool since_mark;
	uint64_t mark_offset_ns; /* what the target's CLOCK_MONOTONIC is ahead of ours */
	/* Hits, and with RETVAL calls, of which they are not true do not count. Not kept. */
	const struct mt_term *terms;
	uint32_t n_terms;
	/* What is read at a hit, by the number of the probe. None: nothing. Not kept. */
	const struct mt_args *args;
	uint32_t n_args;
	/* probe_site.at_entry: [sp] at a hit is the return address, which belongs in its stack. */
	bool probe_at_entry;
	bool conditional_entries; /* some count only under a condition, see trigger_event */
	/* The return is a probe on each instruction that leaves, not a return probe. */
	bool returns_by_insn;
	/* With that: calls are those of Go's goroutines, not of threads. */
	bool by_goroutine;
	/*
	 * There are probes where a thread's region starts and stops. The gate lets samples pass in
	 * one only. With stop_triggers the end of a region is the hit, and a duration is the
	 * region's.
	 */
	bool regions, stop_triggers;
	/* At a trigger the last branches are taken, where perf events have the CPU note them. */
	bool branches;
	/* For a source that samples: its gate, and the log of entries. */
	bool sampling;
	/* The calls of other functions are logged as well: those of events that are is_also. */
	bool also;
	bool also_at_entry, also_by_insn; /* as probe_at_entry and returns_by_insn, of them */
	bool also_by_goroutine;		  /* as by_goroutine */
	/*
	 * With by_goroutine and also_by_goroutine: who makes goroutines ready that wait in a call
	 * is logged, at the probes of kind TRIGGER_READY.
	 */
	bool ready;
	struct mt_go_offsets go_offsets; /* all 0: goroutines have no numbers */
	/* Some of the probes are on system calls; of some of these the descriptor's kind counts. */
	bool syscalls, file_kinds;
	bool tracepoints; /* some are on tracepoints; the numbers of these probes: */
	uint32_t tracepoint_probe, signal_probe;
	uint64_t signals; /* of all of them that are on signals */
	/* Its programs run without perf events: see trigger__program(). */
	bool by_links;
	/* Of the user stack, from the stack pointer on: so many bytes at most; MT_COPY_MAX at most.
	 */
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
	uint64_t missed;     /* times that the kernel did not run the program */
	uint64_t max_ns;     /* largest delay or duration so far */
	uint64_t sum_ns;     /* of all of them */
	uint64_t hist[MT_HIST_BUCKETS];
	uint64_t fine[MT_FINE_BUCKETS]; /* the same values, see mtbpf_shared.h */
};

struct trigger;

/*
 * Loads the programs, disarmed. NULL with errno after one line and a hint on stderr (EPERM: which
 * capability; otherwise the verifier's last line at -v).
 */
struct trigger *trigger__new(const struct trigger_config *config);
/*
 * Detaches and unloads. The perf events stay open: they are the caller's. While attached, the
 * trigger holds them too, so a probe is gone once both have let go.
 */
void trigger__free(struct trigger *trigger);

/* True where this config needs a return probe beside the entry probe. */
bool trigger__needs_return(const struct trigger_config *config);

enum trigger_probe {
	TRIGGER_ENTRY,	/* a hit, or the begin of a call */
	TRIGGER_RETURN, /* a return probe's, or a probe's on an instruction that leaves */
	TRIGGER_START,	/* a region begins: the program returns 1, unless it has triggered */
	TRIGGER_STOP,	/* a region ends: it returns 1, whether that is a trigger or not */
	TRIGGER_READY,	/* runtime.ready() of Go: config.ready */
};

/*
 * A probe in the kernel: on a system call's entry, or its return (a region starts at a return); or
 * on a tracepoint.
 */
struct trigger_syscall {
	char name[64];		/* "fsync", or a tracepoint's: "sched_switch"; "": it is none */
	int number;		/* of a system call; -1: it is a tracepoint */
	struct mt_syscall what; /* of which `roles` has one */
	uint64_t signals; /* of the tracepoint signal_deliver: bit n is signal n; 0: any tracepoint
			   */
};

struct trigger_event {
	int fd;
	enum trigger_probe kind;
	bool is_also;	   /* of a function whose calls are only logged: config.also */
	uint8_t condition; /* it counts only where that holds: insn__condition(); 0: always */
	uint32_t probe;	   /* the number of its probe, from 0; of those that count as hits */
};

/*
 * Attaches to the events: hits of all of them are one trigger's. The program's return value gates
 * the event: 0 no event, 1 the event happens. Events attached before are let go; none is enabled or
 * disabled. 0 or -errno after a line on stderr.
 */
int trigger__attach_all(struct trigger *trigger, const struct trigger_event *events, size_t n);
/* The same of one probe: its entry's event, and its return's (-1: none). */
int trigger__attach(struct trigger *trigger, int entry_event, int return_event);

/*
 * With config.by_links, instead of attaching: the program that is to run at such a probe's hits, a
 * descriptor that is the trigger's, and the cookie that it needs there. Whoever opens links for
 * several probes opens those at which calls and regions end first.
 */
int trigger__program(const struct trigger *trigger, const struct trigger_event *event,
		     uint64_t *cookie);
/* True for a probe at which calls, or regions, end. */
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
 * Beside events, or without: sets probes on system calls, until trigger__detach(). The target is
 * looked at by each. 0 or -errno after a line and a hint.
 */
int trigger__attach_syscalls(struct trigger *trigger, const struct trigger_syscall *all, size_t n);

/* Lets go of the events: its programs run at no hit until it is attached again. */
void trigger__detach(struct trigger *trigger);

/*
 * Arms it: the next hit that passes is a trigger, and disarms. A delay or duration that began
 * before does not count: its start was not recorded. 0 or -errno.
 */
int trigger__arm(struct trigger *trigger);
/* Lets samples and entries in again after a trigger, as arming does; nothing triggers yet. */
void trigger__thaw(struct trigger *trigger);
/*
 * Disarms it, and keeps samples and entries out, as a trigger does. It may stay attached: what
 * passes is counted as unarmed.
 */
void trigger__freeze(struct trigger *trigger);

/* From now on; for a trigger that has a threshold: of the time on or off the CPU, if that is
 * measured. */
void trigger__set_threshold(struct trigger *trigger, uint64_t ns);
/* False from the trigger until it is armed again. */
bool trigger__is_armed(const struct trigger *trigger);

/* Becomes readable when a hit is waiting. Owned by the trigger; works across fork(2). */
int trigger__fd(const struct trigger *trigger);

/* Takes the next hit: 1 and *hit, 0 none waiting, or -errno. */
int trigger__next(struct trigger *trigger, struct mt_hit *hit);
/* False where it came before the trigger was armed, or thawed, last. */
bool trigger__is_latest(const struct trigger *trigger, const struct mt_hit *hit);

/*
 * With config.sampling: the program that lets samples pass until the trigger, for
 * PERF_EVENT_IOC_SET_BPF on any event. Owned by the trigger; -1 without.
 */
int trigger__sample_gate(const struct trigger *trigger);

/*
 * With config.sampling: hands over the latest MT_ENTRY_LOG hits, and, with config.also, as many
 * calls, in no order. What `take` returns
 * but 0 stops it. 0 or -errno.
 */
int trigger__entries(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *entry), void *ctx);

/* With config.ready: hands over the latest MT_READY_LOG wake-ups, in no order. Otherwise the same.
 */
int trigger__ready(const struct trigger *trigger,
		   int (*take)(void *ctx, const struct mt_ready *ready), void *ctx);

/*
 * With config.regions: hands over the latest MT_ENTRY_LOG regions that are over, and those that are
 * not (end_ns 0), in no order. Otherwise the same.
 */
int trigger__regions(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *region), void *ctx);

/*
 * The stack that was copied at the hit that trigger__next() gave last: *size bytes from its sp on,
 * 0 where there are none. Valid until the next call of that.
 */
const uint8_t *trigger__stack(const struct trigger *trigger, size_t *size);

/*
 * With config.also: how many calls there were of the functions beside the trigger's, and how often
 * goroutines were made ready.
 */
uint64_t trigger__also_calls(const struct trigger *trigger);

/* With config.tgids: hands over all processes whose hits count now. 0, or what `take` returns. */
int trigger__each_target(const struct trigger *trigger, int (*take)(void *ctx, pid_t tgid),
			 void *ctx);

/* Sums the counters of all CPUs. 0 or -errno. */
int trigger__stats(const struct trigger *trigger, struct mt_stats *stats);

/* "task storage" or "LRU hash": where what each thread did last is kept. */
const char *trigger__latch_name(const struct trigger *trigger);

/* Adds the counters of one to those of another. */
void mt_stats__add(struct mt_stats *sum, const struct mt_stats *stats);
/*
 * The value below which `percent` (0-100) of the values lie, interpolated inside its bucket; 0
 * where there are none.
 */
uint64_t mt_stats__percentile(const struct mt_stats *stats, double percent);

/* Whether the kernel lets programs have the last branches. To be asked with the right to load some.
 */
bool trigger__has_branch_snapshot(void);

/* Of libbpf, as it says itself. */
const char *trigger__library_version(void);

#endif
