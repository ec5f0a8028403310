/* SPDX-License-Identifier: MIT */
/* All that a recording says of its threads, one after the other, each in the order of time. */
#ifndef MTBPF_SAMPLED_EVENTS_H
#define MTBPF_SAMPLED_EVENTS_H

#include "capture/recording/recording.h"

/* At the same time: in this order. */
enum event_kind { EVENT_ENTRY, EVENT_SAMPLE, EVENT_BY, EVENT_SCHED, EVENT_TAKEN, EVENT_HIT };

struct event {
	uint64_t time_ns;
	pid_t pid, tid;
	enum event_kind kind;
	uint32_t index; /* in the recording's array of that kind */
};

/* Whether it is a thread's region that begins; NULL: it is none. */
const struct mt_sched *event__region(const struct recording *rec, const struct event *event);

/* The region that a thread is in, or was in last. Zero-initialise. */
struct span {
	uint64_t start_ns, end_ns; /* end_ns 0: there was none; UINT64_MAX: it is not over */
};

/* One that was told twice, when it was not over and when it was, has the end that is known. */
void span__take(struct span *span, const struct mt_sched *region);

struct events {
	VEC(struct event) all;
};

/*
 * Where there are regions, only what lies in a thread's own, and these (EVENT_BY). 0 or -ENOMEM;
 * events__fini() in any case.
 */
int events__collect(struct events *events, const struct recording *rec);
void events__fini(struct events *events);

#endif
