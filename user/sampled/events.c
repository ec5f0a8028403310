// SPDX-License-Identifier: MIT
#include "sampled/events.h"

#include <errno.h>
#include <stdlib.h>

static int add(struct events *events, const struct event *event)
{
	struct event *out = VEC_PUSH(&events->all);

	if (!out)
		return -ENOMEM;
	*out = *event;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

int events__collect(struct events *events, const struct recording *rec)
{
	int err = 0;

	for (uint32_t i = 0; i < rec->samples.n && !err; i++) {
		const struct rec_sample *s = &rec->samples.v[i];

		err = add(events, &(struct event){s->time_ns, s->pid, s->tid, EVENT_SAMPLE, i});
	}
	for (uint32_t i = 0; i < rec->scheds.n && !err; i++) {
		const struct rec_sched *s = &rec->scheds.v[i];

		err = add(events, &(struct event){s->time_ns, s->pid, s->tid, EVENT_SCHED, i});
	}
	for (uint32_t i = 0; i < rec->sched_bys.n && !err; i++) {
		const struct mt_sched *b = &rec->sched_bys.v[i];

		err = add(events,
			  &(struct event){b->time_ns, (pid_t)b->tgid, (pid_t)b->tid, EVENT_BY, i});
	}
	for (uint32_t i = 0; i < rec->entries.n && !err; i++) {
		const struct mt_entry *e = &rec->entries.v[i];

		err = add(events, &(struct event){e->start_ns, (pid_t)e->tgid, (pid_t)e->tid,
						  EVENT_ENTRY, i});
	}
	for (uint32_t i = 0; i < rec->hits.n && !err; i++) {
		const struct mt_hit *h = &rec->hits.v[i];

		err = add(events,
			  &(struct event){h->time_ns, (pid_t)h->tgid, (pid_t)h->tid, EVENT_HIT, i});
	}
	if (!err && events->all.n)
		qsort(events->all.v, events->all.n, sizeof(*events->all.v), compare);
	return err;
}

void events__fini(struct events *events)
{
	VEC_FINI(&events->all);
}
