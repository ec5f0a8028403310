/* SPDX-License-Identifier: MIT */
/* All events of a recording's threads, grouped by thread and sorted by time. */
#ifndef MTBPF_SAMPLED_EVENTS_H
#define MTBPF_SAMPLED_EVENTS_H

#include "capture/recording/recording.h"

/* Events at the same time are in this order. */
enum event_kind { EVENT_ENTRY, EVENT_SAMPLE, EVENT_BY, EVENT_SCHED, EVENT_TAKEN, EVENT_HIT };

struct event {
	uint64_t time_ns;
	pid_t pid, tid;
	enum event_kind kind;
	uint32_t index; /* in the recording's array of that kind */
};

/* The region that begins with the event; NULL if it is another event. */
const struct mt_sched *event__region(const struct recording *rec, const struct event *event);

/* The thread's current or last region. Zero-initialise. */
struct span {
	uint64_t start_ns, end_ns; /* end_ns 0: no region; UINT64_MAX: still in it */
};

/* A region may be logged twice, before and after its end: the known end wins. */
void span__take(struct span *span, const struct mt_sched *region);

struct events {
	VEC(struct event) all;
};

/*
 * If the recording has regions, collects only the events within the regions of each thread, and
 * the regions (EVENT_BY). Returns 0 or -ENOMEM; call events__fini() in any case.
 */
int events__collect(struct events *events, const struct recording *rec);
void events__fini(struct events *events);

#endif
