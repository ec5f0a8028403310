/* SPDX-License-Identifier: MIT */
/* The trigger on its probe's events: joins trigger with the events that capture opens. */
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
	bool sampling;	/* for a source that samples */
	bool by_return; /* the returns decide, and the entries only start the clock */
	bool by_links;	/* its events are uprobe_link__open()'s */
	bool by_insn;	/* returns are probed where they are, not by return probes */
	bool has_return_probes;
	/*
	 * Of all probes; first those that decide, and that start and stop: a source may want their
	 * events in its own groups.
	 */
	VEC(struct uprobe_spec) specs;
	size_t n_deciding;
	VEC(struct trigger_syscall) syscalls;
	VEC(struct trigger_event) events; /* on these; fd: ours; -1: none, or the source's */
	bool attached, frozen;
	uint64_t began_ns;	   /* entries and regions that ended before were not recorded */
	uint64_t entries_until_ns; /* entries that began later have not been taken */
	uint64_t regions_until_ns; /* regions that ended later have not been, either */
	uint64_t ready_until_ns;   /* wake-ups of goroutines that came later have not been */
	bool regions, ready;
	uint64_t stall_thresh_ns; /* 0: no clock looks for stalls */
};

/*
 * Probes: `v` trigger. Calls of `also` are only logged (config.also). `ready` are set at the
 * function that makes goroutines ready (config.ready).
 */
struct gate_probes {
	const struct probe *v, *also, *ready;
	size_t n, n_also, n_ready;
	const struct start_stop *regions; /* with config.regions */
};

/*
 * Loads the trigger for some probes, and, with config->regions, for those; all live as long as the
 * gate. Where a region's stop triggers, the probes are not set. 0, or -errno after a line and a
 * hint. gate__close() in any case.
 */
int gate__open(struct gate *gate, const struct trigger_config *config,
	       const struct gate_probes *probes);

/* What is taken from here on began, or lasted, from now on; nothing triggers yet. */
void gate__begin(struct gate *gate);
/* Disarms the trigger, which stays attached: what comes is counted, and not recorded. */
void gate__freeze(struct gate *gate);

/*
 * Sets the probes and attaches. With config->by_links NULL; otherwise source_event, as in
 * source_ops, gives the events of the deciding probes that the source has opened; -1, or NULL for
 * all: it is opened here. 0, or -errno after a line and a hint.
 */
int gate__attach(struct gate *gate, int (*source_event)(const struct source *source, size_t i),
		 const struct source *source);

/*
 * Adds the latest hits to rec, and the wake-ups of goroutines with their stacks, but those that an
 * earlier snapshot has. 0 or -errno.
 */
int gate__take_entries(struct gate *gate, struct recording *rec);
/* The same of the regions. */
int gate__take_regions(struct gate *gate, struct recording *rec);
/* Adds the next hit of the latest arming to rec, with its stack: 1; 0 none waiting; or -errno. */
int gate__take_hit(struct gate *gate, struct recording *rec);

/* Removes the probes that are ours; the trigger stays loaded, and may be attached again. */
void gate__detach(struct gate *gate);
/* Detaches, and removes the probes that are ours. */
void gate__close(struct gate *gate);

#endif
