// SPDX-License-Identifier: MIT
#include "decode/decode.h"

#include <errno.h>
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>

#include "decode/join.h"
#include "decode/losses.h"
#include "decode/pt_time.h"
#include "decode/regions.h"
#include "decode/switches.h"
#include "decode/walk/walker.h"
#include "util/meter.h"

int decode__run(const struct decode_request *request)
{
	struct joiner joiner;
	int err = joiner__init(&joiner, request);

	if (!err)
		err = regions__run(request, joiner__take, &joiner);
	joiner__fini(&joiner);
	return err;
}

void decode__library_version(char *text, size_t size)
{
	struct pt_version version = pt_library_version();

	snprintf(text, size, "%u.%u.%u", version.major, version.minor, version.build);
}

/*
 * ---- rings of CPUs: an interval for each time that a thread ran on a CPU. A thread's intervals,
 * in time order, are its branches.
 */

struct interval {
	const struct rec_switch *who; /* the switch to the thread */
	unsigned int snapshot;
	uint64_t start_ns, end_ns;
	const struct rec_aux *aux;
	VEC(struct branch) branches; /* as in a branch_buffer (walker.h) */
};

struct intervals {
	const struct recording *rec;
	VEC(struct interval) all;
	/* The ring that is being decoded. */
	const struct rec_aux *aux;
	unsigned int snapshot;
	bool is_known; /* the running thread is known, and the last of `all` is its interval */
	uint64_t unknown_insns;	    /* of unknown threads */
	VEC(struct pt_note) events; /* of CPUs while no known thread ran */
};

static void intervals__fini(struct intervals *p)
{
	for (size_t i = 0; i < p->all.n; i++)
		VEC_FINI(&p->all.v[i].branches);
	VEC_FINI(&p->all);
	VEC_FINI(&p->events);
}

/* The next branches are from this CPU's ring in this snapshot. */
static void intervals__begin(struct intervals *p, const struct rec_aux *aux, unsigned int snapshot)
{
	p->aux = aux;
	p->snapshot = snapshot;
	p->is_known = false;
}

static struct interval *current(struct intervals *p)
{
	return p->is_known ? &p->all.v[p->all.n - 1] : NULL;
}

static uint64_t time_of(const struct intervals *p, const struct branch *b)
{
	return tsc__to_ns(b->time_ns, p->aux->tsc, &p->rec->pt);
}

static int add_event(struct intervals *p, const struct branch *b)
{
	return VEC_ADD(&p->events, (struct pt_note){.time_ns = b->time_ns ? time_of(p, b) : 0,
						    .ip = b->from,
						    .value = b->to,
						    .cpu = p->aux->cpu,
						    .kind = b->reason});
}

static int add(struct intervals *p, const struct branch *b)
{
	struct interval *interval = current(p);
	uint64_t ns;

	if (!interval) {
		p->unknown_insns += b->n_insns;
		return b->kind == ENTRY_NOTE ? add_event(p, b) : 0;
	}
	if (VEC_ADD(&interval->branches, *b))
		return -ENOMEM;
	if (!b->time_ns)
		return 0;
	ns = time_of(p, b);
	if (!interval->start_ns)
		interval->start_ns = ns;
	if (ns > interval->end_ns)
		interval->end_ns = ns;
	return 0;
}

/* The thread may be the same as before: each region tells which one it begins with. */
static int begin_thread(struct intervals *p, const struct branch *b)
{
	const struct rec_switch *who = (const void *)(uintptr_t)b->from;
	struct interval *interval = current(p);
	struct branch rest = {.kind = RAW_REST, .n_insns = b->n_insns, .n_branches = b->n_branches};

	/* Instructions that ran before the switch. */
	if (b->n_insns && add(p, &rest))
		return -ENOMEM;
	if (interval && interval->who == who)
		return 0;
	p->is_known = false;
	if (!who)
		return 0;
	interval = VEC_PUSH(&p->all);
	if (!interval)
		return -ENOMEM;
	*interval = (struct interval){.who = who, .snapshot = p->snapshot, .aux = p->aux};
	p->is_known = true;
	return 0;
}

/* A raw_branches_fn. 0 or -ENOMEM. */
static int intervals__take(void *intervals, struct branch *branches, size_t n)
{
	struct intervals *p = intervals;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = branches[i].kind == RAW_WHO ? begin_thread(p, &branches[i])
						  : add(p, &branches[i]);
	return err;
}

static int by_time(const void *a, const void *b)
{
	const struct interval *p = a, *q = b;

	if (p->snapshot != q->snapshot)
		return p->snapshot < q->snapshot ? -1 : 1;
	if (p->start_ns != q->start_ns)
		return p->start_ns < q->start_ns ? -1 : 1;
	return 0;
}

static int by_thread(const void *a, const void *b)
{
	const struct interval *p = a, *q = b;

	if (p->who->tid != q->who->tid)
		return p->who->tid < q->who->tid ? -1 : 1;
	return by_time(a, b);
}

/* Sorts by thread, then by time. */
static void intervals__sort(struct intervals *p)
{
	VEC_SORT(&p->all, by_thread);
}

/* ---- a thread */

/* The stages from one thread's bytes to the functions that take its branches. */
struct thread {
	const struct branch_receiver *receiver;
	struct losses losses;
	struct decode_request request;
};

static int hand_on_marked(void *ctx, struct branch *v, size_t n)
{
	struct thread *t = ctx;
	struct branch_batch out;
	int err = losses__mark(&t->losses, v, n, &out);

	return err ? err : t->receiver->take(t->receiver->ctx, out.v, out.n);
}

static int thread__begin(struct thread *t, pid_t pid, pid_t tid)
{
	struct decode_request *request = &t->request;
	int err = losses__init(&t->losses, request->rec, pid, tid, request->totals);

	request->map = err ? NULL : code_map__new();
	if (!request->map)
		return -ENOMEM;
	request->take = t->receiver->take;
	request->ctx = t->receiver->ctx;
	/* Most threads have not lost anything: their branches skip this stage. */
	if (losses__are_any(&t->losses)) {
		request->take = hand_on_marked;
		request->ctx = t;
	}
	return t->receiver->begin(t->receiver->ctx, pid, tid, request->map);
}

static int thread__end(struct thread *t, int err)
{
	if (!err) {
		losses__finish(&t->losses);
		err = t->receiver->end(t->receiver->ctx);
	}
	code_map__free(t->request.map);
	losses__fini(&t->losses);
	return err;
}

/* Between two snapshots nothing was meant to be recorded. */
static int thread__next_snapshot(struct thread *t, uint64_t end_ns)
{
	struct branch between = {.time_ns = end_ns, .kind = BRANCH_GAP, .reason = GAP_BETWEEN};

	return t->receiver->take(t->receiver->ctx, &between, 1);
}

/* ---- rings of threads */

static int decode_rings(struct thread *t, size_t first)
{
	const struct recording *rec = t->request.rec;
	const struct rec_aux *aux = &rec->aux.v[first];
	int err = thread__begin(t, aux->pid, aux->tid);

	for (size_t i = first; i < rec->aux.n && !err; i++) {
		if (rec->aux.v[i].tid != aux->tid)
			continue;
		if (i != first)
			err = thread__next_snapshot(t, t->request.totals->last_ns);
		t->request.aux = &rec->aux.v[i];
		if (!err)
			err = decode__run(&t->request);
	}
	return thread__end(t, err);
}

static bool is_first_of_thread(const struct recording *rec, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (rec->aux.v[k].tid == rec->aux.v[i].tid)
			return false;
	return true;
}

/* ---- rings of CPUs, divided among threads */

/*
 * mtbpf's rings of one freeze have the same time, and empty rings are not in the recording. perf
 * reads one ring after the other, so that its rings are counted per CPU.
 */
static unsigned int snapshot_of(const struct recording *rec, size_t i)
{
	const struct rec_aux *aux = &rec->aux.v[i], *before = NULL;
	unsigned int n = 0;

	for (const struct rec_aux *a = rec->aux.v; a <= aux; a++) {
		if (a->tid)
			continue;
		if (rec->frozen_ns)
			n += before && a->tsc != before->tsc;
		else
			n += a < aux && a->cpu == aux->cpu;
		before = a;
	}
	return n;
}

static int cut_ring(struct decode_request *request, size_t i, struct intervals *intervals,
		    struct switches *switches)
{
	const struct rec_aux *aux = &request->rec->aux.v[i];
	unsigned int snapshot = snapshot_of(request->rec, i);
	size_t before = intervals->all.n;
	int err;

	request->aux = aux;
	request->switches = switches;
	intervals__begin(intervals, aux, snapshot);
	err = regions__run(request, intervals__take, intervals);
	if (!err && intervals->all.n > before)
		err = switches__set_start(switches, aux->cpu, snapshot,
					  intervals->all.v[before].start_ns);
	return err;
}

/* Adds a gap if the thread ran on another CPU in between, whose ring has overwritten that time. */
static int note_unseen(struct joiner *joiner, const struct switches *switches,
		       const struct interval *from, const struct interval *to)
{
	struct branch lost = {.kind = BRANCH_GAP, .reason = GAP_LOST};

	if (!switches__ran_unseen(switches, to->who, to->snapshot, from->end_ns, to->start_ns))
		return 0;
	return joiner__take(joiner, &lost, 1);
}

static int join_pieces(struct thread *t, struct interval *intervals, size_t n,
		       const struct switches *switches)
{
	struct rec_aux aux = {
		.pid = intervals->who->pid, .tid = intervals->who->tid, .tsc = intervals->aux->tsc};
	struct joiner joiner;
	int err = thread__begin(t, aux.pid, aux.tid);

	t->request.aux = &aux;
	if (joiner__init(&joiner, &t->request))
		err = -ENOMEM;
	for (size_t i = 0; i < n && !err; i++) {
		struct interval *interval = &intervals[i];

		if (i && interval->snapshot != interval[-1].snapshot) {
			err = thread__next_snapshot(t, interval[-1].end_ns);
			joiner__begin(&joiner);
		} else if (i) {
			err = note_unseen(&joiner, switches, &interval[-1], interval);
		}
		aux.cpu = interval->aux->cpu;
		if (!err)
			err = joiner__take(&joiner, interval->branches.v, interval->branches.n);
		meter__add(t->request.meter, interval->branches.n);
	}
	joiner__fini(&joiner);
	return thread__end(t, err);
}

static int join_threads(struct thread *t, struct intervals *intervals,
			const struct switches *switches)
{
	struct meter_work work = {"sorting by thread", METER_BRANCHES, 0};
	int err = 0;

	for (size_t i = 0; i < intervals->all.n; i++)
		work.total += intervals->all.v[i].branches.n;
	meter__next(t->request.meter, &work);
	intervals__sort(intervals);
	for (size_t i = 0, n; i < intervals->all.n && !err; i += n) {
		struct interval *first = &intervals->all.v[i];

		for (n = 1; i + n < intervals->all.n && first[n].who->tid == first->who->tid; n++)
			;
		err = join_pieces(t, first, n, switches);
	}
	return err;
}

static int decode_cpus(struct thread *t)
{
	const struct recording *rec = t->request.rec;
	struct intervals intervals = {.rec = rec};
	struct switches *switches = switches__new(rec);
	struct decode_request request = t->request;
	int err = switches ? 0 : -ENOMEM;

	for (size_t i = 0; i < rec->aux.n && !err; i++)
		if (!rec->aux.v[i].tid)
			err = cut_ring(&request, i, &intervals, switches);
	if (!err && intervals.events.n && t->receiver->take_notes)
		err = t->receiver->take_notes(t->receiver->ctx, intervals.events.v,
					      intervals.events.n);
	if (!err)
		err = join_threads(t, &intervals, switches);
	t->request.totals->unknown_insns += intervals.unknown_insns;
	intervals__fini(&intervals);
	switches__free(switches);
	return err;
}

int decode__threads(const struct recording *rec, struct images *images, bool all_branches,
		    const struct branch_receiver *receiver, struct decode_totals *totals)
{
	struct thread t = {.receiver = receiver,
			   .request = {.rec = rec,
				       .images = images,
				       .totals = totals,
				       .meter = receiver->meter,
				       .all_branches = all_branches,
				       .wants_source = receiver->wants_source}};
	bool has_cpus = false;
	int err = 0;

	for (size_t i = 0; i < rec->aux.n && !err; i++) {
		if (!rec->aux.v[i].tid)
			has_cpus = true;
		else if (is_first_of_thread(rec, i))
			err = decode_rings(&t, i);
	}
	return err || !has_cpus ? err : decode_cpus(&t);
}

static int ignore(void *ctx, struct branch *v, size_t n)
{
	return 0;
}

/* Bytes of PT to decode at first: these mostly contain a PSB and a branch of the thread. */
#define LOOK_SIZE (16u << 10)

/* Finds the first and the last time in a part of a thread's ring; 0: it lacks a time. */
static int look_at_thread(struct decode_request request, struct decode_bounds *bounds)
{
	struct decode_totals totals = {0};
	int err;

	request.map = code_map__new();
	if (!request.map)
		return -ENOMEM;
	request.take = ignore;
	request.totals = &totals;
	err = decode__run(&request);
	code_map__free(request.map);
	*bounds = (struct decode_bounds){totals.first_ns, totals.first_ns ? totals.last_ns : 0};
	return err;
}

static void widen(struct decode_bounds *bounds, const struct decode_bounds *by)
{
	if (by->first_ns && (!bounds->first_ns || by->first_ns < bounds->first_ns))
		bounds->first_ns = by->first_ns;
	if (by->last_ns > bounds->last_ns)
		bounds->last_ns = by->last_ns;
}

/* Like look_at_thread(), for known threads in the ring of the request's CPU. */
static int look_at_cpu(const struct decode_request *request, struct decode_bounds *bounds)
{
	struct intervals intervals = {.rec = request->rec};
	int err;

	*bounds = (struct decode_bounds){0};
	intervals__begin(&intervals, request->aux, 0);
	err = regions__run(request, intervals__take, &intervals);
	for (size_t i = 0; i < intervals.all.n && !err; i++)
		widen(bounds, &(struct decode_bounds){intervals.all.v[i].start_ns,
						      intervals.all.v[i].end_ns});
	intervals__fini(&intervals);
	return err;
}

/* Decodes a growing part of one end of the ring until it contains a time. */
static int look_at_end(struct decode_request *request, const struct rec_aux *aux, bool at_end,
		       struct decode_bounds *bounds)
{
	struct rec_aux part = *aux;
	int err;

	request->aux = &part;
	part.size = LOOK_SIZE;
	for (;;) {
		if (part.size > aux->size)
			part.size = aux->size;
		if (at_end)
			part.data = aux->data + aux->size - part.size;
		err = request->switches ? look_at_cpu(request, bounds)
					: look_at_thread(*request, bounds);
		if (err || bounds->first_ns || part.size == aux->size)
			return err;
		part.size *= 4;
	}
}

static int look_at_ring(struct decode_request *request, const struct rec_aux *aux,
			struct decode_bounds *bounds)
{
	struct decode_bounds begin, end = {0};
	int err = look_at_end(request, aux, false, &begin);

	if (!err && aux->size > LOOK_SIZE && begin.first_ns)
		err = look_at_end(request, aux, true, &end);
	widen(bounds, &begin);
	widen(bounds, &end);
	return err;
}

int decode__find_bounds(const struct recording *rec, struct images *images,
			struct decode_bounds *bounds)
{
	struct switches *switches = switches__new(rec);
	struct decode_request request = {.rec = rec, .images = images, .jobs = 1};
	int err = switches ? 0 : -ENOMEM;

	*bounds = (struct decode_bounds){0};
	for (size_t i = 0; i < rec->aux.n && !err; i++) {
		request.switches = rec->aux.v[i].tid ? NULL : switches;
		err = look_at_ring(&request, &rec->aux.v[i], bounds);
	}
	switches__free(switches);
	return err;
}
