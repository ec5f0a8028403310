/* SPDX-License-Identifier: MIT */
/* What perf's sideband records say of the target: mappings, names, threads that begin and end. */
#ifndef MTBPF_CAPTURE_PERF_SIDEBAND_H
#define MTBPF_CAPTURE_PERF_SIDEBAND_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/perf_ring.h"
#include "capture/perf/switch_log.h"
#include "capture/recording/recording.h"
#include "target/pid_set.h"

struct sideband {
	/* Records of other processes are left out; NULL: there are none but of a cgroup. */
	struct pid_set *pids;
	bool children;	       /* what they fork is added to pids */
	struct recording *rec; /* maps, thread names and losses are added here */
	/* Threads that began, for the caller to follow and clear; and those that ended. */
	VEC(struct rec_thread) started;
	VEC(pid_t) ended;
	/* Rings by CPU: */
	struct switch_log log;
	VEC(struct rec_thread) joined; /* threads that came from elsewhere, likewise */
	size_t maps_kept;	       /* how many maps there were when it was last tidied up */
};

void sideband__fini(struct sideband *sideband);

/*
 * Takes every record that waits in the ring; of a CPU's two rings, that of Intel PT first. 0 or
 * -ENOMEM.
 */
int sideband__drain(struct sideband *sideband, struct perf_ring *ring);

/*
 * Rings by CPU: forgets the processes that have ended and that no ring's trace has any more, where
 * that may be worth it.
 */
void sideband__tidy(struct sideband *sideband);

#endif
