/* SPDX-License-Identifier: MIT */
/* The gate attaches the trigger's programs to the events of its probes, and takes their hits. */
#ifndef MTBPF_SESSION_GATE_H
#define MTBPF_SESSION_GATE_H

#include "capture/recording/recording.h"
#include "capture/probe/uprobe_event.h"
#include "session/probe/probe.h"
#include "session/probe/probes.h"
#include "trigger/trigger.h"

struct source;

struct gate {
	struct trigger *trigger;
	bool sampling;	      /* the source samples */
	bool by_return;	      /* whether a hit triggers is decided when the function returns */
	bool by_links;	      /* events are links: uprobe_link__open() */
	bool function_events; /* kprobes on kernel functions are among the events */
	bool freezes_by_call; /* hits in the kernel freeze by a kprobe on MT_FREEZE_CALL */
	pid_t pid;	      /* whose hits count; -1: those of several processes */
	/* Return instructions are probed, instead of return probes: of the trigger, of -also. */
	bool by_insn, also_by_insn;
	bool has_return_probes;
	/*
	 * All uprobes; kprobes only with function_events, and that of MT_FREEZE_CALL. The first
	 * n_deciding decide whether a hit triggers, or start or stop a thread's recording: a source
	 * may open their events in its own groups.
	 */
	VEC(struct uprobe_spec) specs;
	size_t n_deciding;
	/*
	 * The probes whose events a source opens itself: the deciding ones, then the breakpoints at
	 * which it pauses and resumes.
	 */
	VEC(struct uprobe_spec) of_source;
	VEC(struct kernel_probe) kernel_probes;
	VEC(struct trigger_event) events; /* one per spec; fd -1: none, or the source's */
	bool attached, frozen;
	uint64_t began_ns; /* start of this recording; earlier entries do not belong to it */
	uint64_t entries_until_ns; /* entries that began up to here have been taken */
	uint64_t regions_until_ns; /* regions that ended up to here have been taken */
	uint64_t ready_until_ns;   /* goroutine wake-ups up to here have been taken */
	bool regions, go_waits;
	bool by_key;		  /* regions are requests: config.by_key */
	bool bounds;		  /* regions pause and resume the source */
	uint64_t stall_thresh_ns; /* 0: do not look for stalls */
};

/*
 * The probes: `v` trigger; calls of `also` are only logged (config.also); those of go_waits, too
 * (config.go_waits).
 */
struct gate_probes {
	const struct probe *v, *also;
	size_t n, n_also;
	const struct go_waits *go_waits;
	const struct start_stop *regions; /* with config.regions */
	/*
	 * The source freezes by events that it opens itself at the probes. Kernel functions then
	 * get kprobe events, too.
	 */
	bool of_source;
	size_t n_breakpoints; /* of the CPU, that the source uses itself */
};

/*
 * The first probe at whose hits the kernel cannot freeze a source by an event; NULL: it can at all
 * of them.
 */
const struct probe *gate__find_unfrozen(const struct probe *probes, size_t n);

/*
 * Loads the trigger for the probes, which must live as long as the gate. If the end of a region
 * triggers, probes->v are not set. Returns 0, or -errno after a message and a hint; call
 * gate__close() in any case.
 */
int gate__open(struct gate *gate, const struct trigger_config *config,
	       const struct gate_probes *probes);

/* Starts a recording: earlier entries and regions do not belong to it. Does not arm. */
void gate__begin(struct gate *gate);
/* Disarms the trigger, which stays attached: later hits are counted but not recorded. */
void gate__freeze(struct gate *gate);

/*
 * Sets the probes and attaches the programs. source_event (as in source_ops) returns the event that
 * the source has opened for deciding probe i, or -1: then the event is opened here. It is NULL with
 * config->by_links. 0, or -errno after a message and a hint.
 */
int gate__attach(struct gate *gate, int (*source_event)(const struct source *source, size_t i),
		 const struct source *source);

/*
 * Adds the logged hits, and the wake-ups of goroutines with their stacks, to rec, except those of
 * earlier snapshots. 0 or -errno.
 */
int gate__take_entries(struct gate *gate, struct recording *rec);
/* Adds the regions to rec, open ones included, except those of earlier snapshots. 0 or -errno. */
int gate__take_regions(struct gate *gate, struct recording *rec);
/* Adds the next hit of the latest arming to rec, with its stack. Returns 1; 0: none; or -errno. */
int gate__take_hit(struct gate *gate, struct recording *rec);

/* Removes the probes on Go's runtime: waits of goroutines are no longer recorded. */
void gate__stop_go_waits(struct gate *gate);
/* Removes our probes; the trigger stays loaded and can be attached again. */
void gate__detach(struct gate *gate);
/* Detaches, removes our probes, and frees the trigger. */
void gate__close(struct gate *gate);

#endif
