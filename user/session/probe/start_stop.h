/* SPDX-License-Identifier: MIT */
/* -start and -stop: where the recording of a thread begins, and where it ends. */
#ifndef MTBPF_SESSION_PROBE_START_STOP_H
#define MTBPF_SESSION_PROBE_START_STOP_H

#include "capture/recording/recording.h"
#include "session/capture_options.h"
#include "session/probe/probes.h"

struct start_stop {
	struct probes starts, stops; /* none: everything is recorded */
	bool stop_triggers;	     /* no other trigger was named */
	VEC(struct rec_place) start_places, stop_places;
};

/*
 * Finds what the options name; nothing where they name none.
 * 0, or -errno after a line and a hint: -EINVAL both are in one place. start_stop__fini() in any
 * case.
 */
int start_stop__find(struct start_stop *places, const struct capture_options *options,
		     const struct probe_source *source);
void start_stop__fini(struct start_stop *places);

static inline bool start_stop__any(const struct start_stop *places)
{
	return places->stops.all.n;
}

#endif
