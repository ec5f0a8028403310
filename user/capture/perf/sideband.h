/* SPDX-License-Identifier: MIT */
/* What perf's sideband records say of the target: mappings, names, threads that begin and end. */
#ifndef MTBPF_CAPTURE_PERF_SIDEBAND_H
#define MTBPF_CAPTURE_PERF_SIDEBAND_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/perf_ring.h"
#include "capture/perf/switch_log.h"
#include "capture/recording/recording.h"

struct sideband {
	pid_t pid; /* records of other processes are left out; 0: there are none but of a cgroup */
	struct recording *rec; /* maps, thread names and losses are added here */
	VEC(pid_t) started;    /* threads that began, for the caller to follow and clear */
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
