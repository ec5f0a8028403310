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

#include "trigger/histogram.h"
#include "trigger/trigger_config.h"

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
	TRIGGER_START,	/* start of a region: returning 1 resumes Intel PT */
	TRIGGER_STOP,	/* end of a region: returning 1 pauses Intel PT */
	/* Functions of Go's runtime: config.go_waits */
	TRIGGER_GO_PARK,    /* runtime.gopark() */
	TRIGGER_GO_READY,   /* runtime.ready() */
	TRIGGER_GO_EXECUTE, /* runtime.execute() */
	TRIGGER_FREEZE, /* a kprobe on MT_FREEZE_CALL: the program returns 1 after the trigger */
};

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
/*
 * True for a probe on Go's runtime; and true for the end of a call, of a region or of a goroutine's
 * wait.
 */
bool trigger_event__is_go_wait(const struct trigger_event *event);
bool trigger_event__is_end(const struct trigger_event *event);

/* The period in ns of the clock that checks for stalls: a stall is noticed at most that late. */
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
 * Sets probes in the kernel, until trigger__detach(). If there are events, too, call
 * trigger__attach_all() first, since it detaches. The probes are set for the whole machine; each
 * checks whether the target hit it. 0, or -errno after a message and a hint.
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
 * PERF_EVENT_IOC_SET_BPF on any event. Owned by the trigger; negative without config.sampling.
 */
int trigger__sample_gate(const struct trigger *trigger);

/*
 * With config.sampling: passes the latest MT_ENTRY_LOG hits and, with config.also and
 * config.go_waits, as many calls and waits to `take`, unordered. A non-zero result of `take` stops
 * and is returned. 0 or -errno.
 */
int trigger__entries(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *entry), void *ctx);

/*
 * Like trigger__entries(), with config.go_waits: the latest MT_GO_STACKS wake-ups of goroutines, or
 * the stacks of as many waits (of_parks).
 */
int trigger__go_stacks(const struct trigger *trigger, bool of_parks,
		       int (*take)(void *ctx, const struct mt_go_stack *stack), void *ctx);

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

/* With config.also: the number of logged calls. */
uint64_t trigger__also_calls(const struct trigger *trigger);
/* With config.go_waits: hits of the probes on Go's runtime. */
uint64_t trigger__go_wait_hits(const struct trigger *trigger);
/*
 * Detaches from the probes on Go's runtime, for good: waits are no longer logged, and
 * trigger__entries() does not pass the logged ones, since the ends of some are missing. The caller
 * keeps its perf events.
 */
void trigger__stop_go_waits(struct trigger *trigger);

/* With config.tgids: passes to `take` all processes whose hits count. 0, or what `take` returns. */
int trigger__each_target(const struct trigger *trigger, int (*take)(void *ctx, pid_t tgid),
			 void *ctx);

/* Sums the counters of all CPUs. 0 or -errno. */
int trigger__stats(const struct trigger *trigger, struct mt_stats *stats);

/* Returns the kind of map that keeps the state of each thread: "task storage" or "LRU hash". */
const char *trigger__latch_name(const struct trigger *trigger);

/* True if BPF programs can read the last branches. Needs the right to load programs. */
bool trigger__has_branch_snapshot(void);

/* libbpf's version. */
const char *trigger__library_version(void);

#endif
