/* SPDX-License-Identifier: MIT */
/* What perf's sideband records say of the target: mappings, names, threads that begin and end. */
#ifndef MTBPF_CAPTURE_PT_SIDEBAND_H
#define MTBPF_CAPTURE_PT_SIDEBAND_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/pt/perf_ring.h"
#include "capture/recording.h"

struct sideband {
	pid_t pid;	       /* records of other processes are left out */
	struct recording *rec; /* maps, thread names and losses are added here */
	VEC(pid_t) started;    /* threads that began, for the caller to follow and clear */
	VEC(pid_t) ended;
};

void sideband__fini(struct sideband *sideband);

/* Takes every record that waits in the ring. 0 or -ENOMEM. */
int sideband__drain(struct sideband *sideband, struct perf_ring *ring);

#endif
