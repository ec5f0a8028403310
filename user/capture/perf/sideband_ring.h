/* SPDX-License-Identifier: MIT */
/* The event that tells of mappings, names, and threads that begin and end, and its ring. */
#ifndef MTBPF_CAPTURE_PERF_SIDEBAND_RING_H
#define MTBPF_CAPTURE_PERF_SIDEBAND_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/perf/event_place.h"
#include "capture/perf/perf_ring.h"

struct sideband_ring_config {
	size_t size;	/* a power of two */
	bool switches;	/* who runs on the CPU as well */
	bool at_once;	/* each record wakes: what a thread begins has to be followed */
	bool monotonic; /* times are CLOCK_MONOTONIC, not perf's clock */
};

/* An event of its own, a dummy: it outlives the freeze of what it tells of. */
struct sideband_ring {
	int event; /* -1: not open; readable when a quarter of the ring waits to be read, or
		      anything */
	struct perf_ring ring;
};

/* For sideband__drain(). 0, or -errno as perf_event_open(2) and perf_ring__map(). Prints nothing.
 */
int sideband_ring__open(struct sideband_ring *ring, const struct event_place *place,
			const struct sideband_ring_config *config);
void sideband_ring__close(struct sideband_ring *ring);

#endif
