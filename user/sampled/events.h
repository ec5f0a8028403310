/* SPDX-License-Identifier: MIT */
/* All that a recording says of its threads, one after the other, each in the order of time. */
#ifndef MTBPF_SAMPLED_EVENTS_H
#define MTBPF_SAMPLED_EVENTS_H

#include "capture/recording/recording.h"

/* At the same time: in this order. */
enum event_kind { EVENT_ENTRY, EVENT_SAMPLE, EVENT_BY, EVENT_SCHED, EVENT_HIT };

struct event {
	uint64_t time_ns;
	pid_t pid, tid;
	enum event_kind kind;
	uint32_t index; /* in the recording's array of that kind */
};

struct events {
	VEC(struct event) all;
};

/* 0 or -ENOMEM; events__fini() in any case. */
int events__collect(struct events *events, const struct recording *rec);
void events__fini(struct events *events);

#endif
