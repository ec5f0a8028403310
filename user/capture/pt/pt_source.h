/* SPDX-License-Identifier: MIT */
/* Between the pt source's files: its state, and what it makes of it. */
#ifndef MTBPF_CAPTURE_PT_PT_SOURCE_H
#define MTBPF_CAPTURE_PT_PT_SOURCE_H

#include <stdbool.h>

#include "capture/perf/perf_clock.h"
#include "capture/pt/pmu.h"
#include "capture/pt/pt_ring.h"
#include "capture/perf/followed.h"
#include "capture/source.h"
#include "capture/probe/tracefs_probe.h"

struct ended_spool {
	pid_t pid, tid;
	struct spool spool;
};

struct source {
	struct source_config config;
	struct pt_pmu pmu;
	struct pt_ring_config ring_config;
	/* Several rings: the probes that all their events share, and their ids. */
	VEC(struct tracefs_probe *) tracefs;
	VEC(uint32_t) tracepoints;
	VEC(struct pt_ring) rings; /* a thread's each, or a CPU's each */
	/* Of rings that are closed, since their threads have ended. */
	VEC(struct ended_spool) spools;
	struct followed followed;
	struct clock_point first;
	bool frozen;
	bool said_full; /* a ring that is drained was not drained in time */
};

/*
 * Opens the rings of all that is to be recorded, with the best way to freeze them that there is.
 * 0, or -errno after a line and a hint; nothing is opened where they would not fit into memory.
 */
int pt_source__open_rings(struct source *s);
/* One more, for a thread. 0 or -errno: -ESRCH it is gone already. Prints nothing. */
int pt_source__add_thread(struct source *s, pid_t pid, pid_t tid);
void pt_source__close_rings(struct source *s);
/* Removes the probes that the rings' events share; after these are closed. */
void pt_source__remove_probes(struct source *s);

/* Threads, names and mappings as they are now: the sideband tells of later ones. 0 or -errno. */
int pt_source__note_initial(struct source *s);
/* Those of the threads that came from elsewhere. 0 or -errno. */
int pt_source__note_joined(struct source *s);

/* The ring will be closed, and what it has recorded stays. 0 or -ENOMEM. */
int pt_source__keep_spool(struct source *s, struct pt_ring *ring);

/* source_ops.read */
int pt_source__read(struct source *s, struct recording *rec);

#endif
