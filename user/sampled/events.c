// SPDX-License-Identifier: MIT
#include "sampled/events.h"

#include <errno.h>
#include <stdlib.h>

#include "util/vec.h"

static int add(struct events *events, const struct event *event)
{
	return VEC_ADD(&events->all, *event);
}

ORDER(compare, struct event,
      COMPARE(x->tid, y->tid)
	      ?: COMPARE(x->time_ns, y->time_ns)
	      ?: COMPARE(x->kind, y->kind)
	      ?: COMPARE(x->index, y->index))

const struct mt_sched *event__region(const struct recording *rec, const struct event *event)
{
	const struct mt_sched *by =
		event->kind == EVENT_BY ? &rec->sched_bys.v[event->index] : NULL;

	return by && by->kind == MT_SCHED_REGION ? by : NULL;
}

void span__take(struct span *span, const struct mt_sched *region)
{
	uint64_t end_ns = region->took.end_ns ? region->took.end_ns : UINT64_MAX;
	bool is_known = span->end_ns && span->start_ns == region->time_ns;

	if (!is_known || end_ns < span->end_ns)
		span->end_ns = end_ns;
	span->start_ns = region->time_ns;
}

static bool has_regions(const struct recording *rec)
{
	for (size_t i = 0; i < rec->sched_bys.n; i++)
		if (rec->sched_bys.v[i].kind == MT_SCHED_REGION)
			return true;
	return false;
}

/* The log of regions covers more time than the ring, which lacks the events of older regions. */
static bool replaces(const struct event *event, const struct event *last)
{
	return last->tid == event->tid && last->time_ns < event->time_ns;
}

/* Drops events outside of regions: the kernel notes switches there as well. */
static void drop_outside(struct events *events, const struct recording *rec)
{
	bool is_first = true;
	struct span span = {0};
	size_t n = 0;
	pid_t tid = 0;

	VEC_EACH(&events->all, event) {
		const struct mt_sched *region = event__region(rec, event);

		if (event->tid != tid) {
			span = (struct span){0};
			is_first = true;
		}
		if (region && is_first && n && replaces(event, &events->all.v[n - 1]))
			n--;
		tid = event->tid;
		if (region)
			span__take(&span, region);
		else if (event->time_ns > span.end_ns)
			continue;
		is_first = is_first && region;
		events->all.v[n++] = *event;
	}
	events->all.n = n;
}

/* Two programs at one context switch read the clock within this time. */
#define AT_SWITCH_NS 100000

/*
 * A hit in the kernel may be in the context switch itself, such as one of sched:sched_switch, and
 * its program may run after the one that has noted the switch. The thread is off its CPU from then
 * on, and has not come back: such hits are moved to the time of the switch, before it.
 */
static void move_to_switches(struct events *events, const struct recording *rec)
{
	uint64_t off_ns = 0;
	pid_t tid = 0;
	bool has_moved = false;

	VEC_EACH(&events->all, event) {
		if (event->tid != tid)
			off_ns = 0;
		tid = event->tid;
		if (event->kind == EVENT_SCHED)
			off_ns = rec->scheds.v[event->index].what == REC_SCHED_IN ? 0
										  : event->time_ns;
		if (event->kind != EVENT_ENTRY || !off_ns ||
		    rec->entries.v[event->index].kind != MT_ENTRY_SYSCALL ||
		    event->time_ns - off_ns > AT_SWITCH_NS)
			continue;
		event->time_ns = off_ns;
		has_moved = true;
	}
	if (has_moved)
		VEC_SORT(&events->all, compare);
}

int events__collect(struct events *events, const struct recording *rec)
{
	int err = 0;

	for (uint32_t i = 0; i < rec->samples.n && !err; i++) {
		const struct rec_sample *s = &rec->samples.v[i];

		if (!s->at_park)
			err = add(events,
				  &(struct event){s->time_ns, s->pid, s->tid, EVENT_SAMPLE, i});
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
	for (uint32_t i = 0; i < rec->taken.n && !err; i++) {
		const struct rec_taken *t = &rec->taken.v[i];

		/* take_throttled() looks for throttling when the thread runs again. */
		if (!t->by_quota)
			err = add(events, &(struct event){t->until_ns - t->ns, t->pid, t->tid,
							  EVENT_TAKEN, i});
	}
	for (uint32_t i = 0; i < rec->entries.n && !err; i++) {
		const struct mt_entry *e = &rec->entries.v[i];

		/* Goroutines have trees of their own: goroutines.h. */
		if (e->goroutine)
			continue;
		err = add(events, &(struct event){e->start_ns, (pid_t)e->tgid, (pid_t)e->tid,
						  EVENT_ENTRY, i});
	}
	for (uint32_t i = 0; i < rec->hits.n && !err; i++) {
		const struct mt_hit *h = &rec->hits.v[i];

		err = add(events,
			  &(struct event){h->time_ns, (pid_t)h->tgid, (pid_t)h->tid, EVENT_HIT, i});
	}
	if (!err) {
		VEC_SORT(&events->all, compare);
		move_to_switches(events, rec);
	}
	if (!err && has_regions(rec))
		drop_outside(events, rec);
	return err;
}

void events__fini(struct events *events)
{
	VEC_FINI(&events->all);
}
