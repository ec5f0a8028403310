// SPDX-License-Identifier: MIT
#include "decode/decode.h"

#include <errno.h>
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/losses.h"
#include "decode/pt_time.h"
#include "decode/regions.h"
#include "decode/switches.h"
#include "decode/walk/walker.h"
#include "util/cleanup.h"
#include "util/insn.h"
#include "util/meter.h"

/*
 * ---- consecutive regions are joined to one thread's branches, and completed with what each could
 * not know about the one before
 */

struct joiner {
	const struct decode_request *request;
	struct decode_totals *totals;
	struct branch *out; /* COPIED_MAX entries; the first n_out are to be handed on */
	size_t n_out;
	size_t next_map;
	uint64_t time_ns; /* of the last branch */
	uint64_t base,
		base_ns; /* cache of to_ns(): the first of 2^time_shift ticks, and its time */
	uint32_t n_insns, n_branches; /* counts of entries not handed on, for the next branch */
	bool started;		      /* a branch has been handed on */
	bool tracing;		      /* between a BEGIN and its END */
	bool in_gap;		      /* no BEGIN since the last GAP */
	uint8_t gap_reason;
	uint64_t gap_ns;
	/*
	 * The current stretch. Until it ends, traced_ns contains only times to subtract, and insns
	 * is totals->insns at its start.
	 */
	struct speed speed;
	uint64_t stopped_ns; /* if not tracing: since when */
	uint64_t async_ip;   /* where the last END_ASYNC left; 0 after anything else */
};

/*
 * Plain branches are handed on in place. Where entries are inserted or removed, branches are copied
 * until ALONE_MIN plain branches follow each other, since small batches cost more than copying. Any
 * other entry becomes at most MOST_OF_ONE entries.
 */
#define ALONE_MIN   128
#define COPIED_MAX  1024
#define MOST_OF_ONE 4

/*
 * Returns a joiner for the begin of a snapshot. `out` has room for COPIED_MAX branches, and stays
 * the caller's.
 */
static struct joiner joiner_of(const struct decode_request *request, struct branch *out)
{
	return (struct joiner){
		.request = request, .totals = request->totals, .out = out, .base = UINT64_MAX};
}

static int hand_on(struct joiner *j)
{
	size_t n = j->n_out;

	j->n_out = 0;
	return n ? j->request->take(j->request->ctx, j->out, n) : 0;
}

/* The same as tsc__to_ns(), with a cache for ticks with the same high bits. */
static inline uint64_t to_ns(struct joiner *j, uint64_t tsc)
{
	const struct rec_pt_config *pt = &j->request->rec->pt;
	uint64_t mask = (1ull << pt->time_shift) - 1, reference = j->request->aux->tsc;
	uint64_t base = tsc & ~mask;

	if (UNLIKELY(base != j->base)) {
		uint64_t first = tsc__extend(base, reference);

		/* The reference is half a wrap away, in the middle of these ticks. */
		if (tsc__extend(base | mask, reference) - first != mask)
			return tsc__to_ns(tsc, reference, pt);
		j->base = base;
		j->base_ns = rec_pt__tsc_to_ns(pt, first);
	}
	return j->base_ns + (((tsc & mask) * pt->time_mult) >> pt->time_shift);
}

static inline void add(struct joiner *j, const struct branch *b)
{
	struct decode_totals *totals = j->totals;
	uint32_t n_insns = b->n_insns + j->n_insns;

	j->out[j->n_out++] = (struct branch){.time_ns = j->time_ns,
					     .from = b->from,
					     .to = b->to,
					     .n_insns = n_insns,
					     .n_branches = b->n_branches + j->n_branches,
					     .kind = b->kind,
					     .len = b->len,
					     .reason = b->reason};
	j->n_insns = j->n_branches = 0;
	totals->branches++;
	totals->insns += n_insns;
}

static void keep_counts(struct joiner *j, const struct branch *b)
{
	j->n_insns += b->n_insns;
	j->n_branches += b->n_branches;
}

/* Hands on earlier branches before the map changes: they ran in the code as it was. */
static int update_map(struct joiner *j, const struct branch *b)
{
	const struct decode_request *r = j->request;
	int err;

	j->out[j->n_out++] = (struct branch){
		.time_ns = j->time_ns, .n_insns = j->n_insns + b->n_insns, .kind = ENTRY_MAP};
	if (!images__is_due(r->images, j->time_ns, j->next_map, r->map))
		return 0;
	err = hand_on(j);
	return err ? err : images__apply(r->images, r->aux->pid, j->time_ns, &j->next_map, r->map);
}

static void stop_tracing(struct joiner *j)
{
	if (j->tracing)
		j->stopped_ns = j->time_ns;
	j->tracing = false;
}

static void end_stretch(struct joiner *j)
{
	uint64_t insns = j->totals->insns, end_ns = j->tracing ? j->time_ns : j->stopped_ns;
	struct speed speed = j->speed;

	if (!j->started || end_ns < speed.begin_ns + SPEED_MIN_NS)
		return;
	speed.end_ns = end_ns;
	speed.traced_ns += end_ns - speed.begin_ns;
	speed.insns = insns - speed.insns;
	speed.cpu = j->request->aux->cpu;
	j->speed = (struct speed){.begin_ns = end_ns, .insns = insns};
	j->out[j->n_out++] = speed__entry(&speed);
}

static void begin(struct joiner *j, const struct branch *b)
{
	struct decode_totals *totals = j->totals;
	struct branch begin = *b;

	begin.kind = BRANCH_BEGIN;
	if (!j->started)
		j->speed = (struct speed){.begin_ns = j->time_ns, .insns = totals->insns};
	else if (!j->tracing)
		j->speed.traced_ns -= j->time_ns - j->stopped_ns;
	j->tracing = true;
	j->async_ip = 0;
	if (j->in_gap)
		totals->gap_ns[j->gap_reason] += j->time_ns - j->gap_ns;
	j->in_gap = false;
	j->started = true;
	if (!totals->first_ns || j->time_ns < totals->first_ns)
		totals->first_ns = j->time_ns;
	add(j, &begin);
}

/*
 * If a probed instruction is a branch, the kernel executes it for the thread, and no packet tells
 * it. The branch is added if tracing continues at its target.
 */
static void go_on(struct joiner *j, const struct branch *b)
{
	uint8_t code[INSN_MAX_LEN];
	struct branch at = *b, branch = {.from = j->async_ip, .to = b->to, .n_branches = 1};
	struct insn insn = {0};
	size_t n = 0;

	if (j->async_ip && j->async_ip != b->to)
		n = code_map__read(j->request->map, j->async_ip, code, sizeof(code));
	if (!n || insn__decode(code, n, j->async_ip, &insn) || insn.target != b->to) {
		begin(j, b);
		return;
	}
	at.to = j->async_ip;
	branch.kind = insn.cls == INSN_CALL   ? BRANCH_CALL
		      : insn.cls == INSN_COND ? BRANCH_COND
					      : BRANCH_JUMP;
	branch.len = insn.len;
	begin(j, &at);
	add(j, &branch);
}

/* Errors that follow before tracing continues belong to the same gap. */
static void gap(struct joiner *j, const struct branch *b)
{
	struct code_place place;

	if (b->reason == GAP_MISMATCH && code_map__find(j->request->map, b->from, &place))
		images__mismatch(j->request->images, place.image);
	stop_tracing(j);
	j->async_ip = 0;
	if (j->in_gap) {
		keep_counts(j, b);
		return;
	}
	j->in_gap = true;
	j->gap_reason = b->reason;
	j->gap_ns = j->time_ns;
	j->totals->gaps[b->reason]++;
	/* A gap before the first branch does not interrupt anything. */
	if (j->started)
		add(j, b);
	else
		keep_counts(j, b);
}

/* Handles an entry that is not a plain branch. */
static int take_other(struct joiner *j, const struct branch *b)
{
	uint64_t ns = b->time_ns ? to_ns(j, b->time_ns) : 0;
	struct branch *out;
	int err = 0;

	/*
	 * A TSC packet may set the time back; times of branches never go back. A note does not set
	 * the time, because packets after the note may show direct branches before it: it may be
	 * later than branches that follow it.
	 */
	if (ns > j->time_ns && b->kind != ENTRY_NOTE)
		j->time_ns = ns;
	switch (b->kind) {
	case RAW_REST:
		keep_counts(j, b);
		break;
	case ENTRY_NOTE:
		keep_counts(j, b);
		out = &j->out[j->n_out++];
		*out = *b;
		out->time_ns = ns > j->time_ns ? ns : j->time_ns;
		out->n_insns = out->n_branches = 0;
		out->cpu = j->request->aux->cpu;
		break;
	case RAW_START:
		err = update_map(j, b);
		if (j->tracing)
			keep_counts(j, b);
		else
			begin(j, b);
		break;
	case BRANCH_BEGIN:
		err = update_map(j, b);
		go_on(j, b);
		break;
	case BRANCH_GAP:
		gap(j, b);
		break;
	case BRANCH_END:
	case BRANCH_END_ASYNC:
	case BRANCH_END_SYSCALL:
		stop_tracing(j);
		j->async_ip = b->kind == BRANCH_END_ASYNC ? b->from : 0;
		add(j, b);
		break;
	default:
		break;
	}
	return err;
}

/*
 * Completes the plain branches at the begin of the array in place, and returns their number. Plain
 * branches go from one known place to another; nothing else is done for them. The code has no
 * branches that the CPU cannot predict.
 */
static size_t complete_plain(struct joiner *j, struct branch *raw, size_t n)
{
	uint64_t insns = 0, time_ns = j->time_ns;
	size_t i = 0;

	for (; i < n && raw[i].kind <= BRANCH_LEAVE; i++) {
		struct branch *b = &raw[i];
		uint64_t ns = LIKELY(b->time_ns) ? to_ns(j, b->time_ns) : 0;

		time_ns = ns > time_ns ? ns : time_ns;
		b->time_ns = time_ns;
		b->packet = 0;
		insns += b->n_insns;
	}
	if (!i)
		return 0;
	j->time_ns = time_ns;
	j->totals->branches += i;
	j->totals->insns += insns + j->n_insns;
	raw->n_insns += j->n_insns;
	raw->n_branches += j->n_branches;
	j->n_insns = j->n_branches = 0;
	return i;
}

/*
 * A raw_branches_fn (regions.h) with the joiner as ctx. It hands on everything before it returns.
 * 0, -ENOMEM, or what the request's `take` returned.
 */
static int joiner__take(void *joiner, struct branch *raw, size_t n)
{
	struct joiner *j = joiner;
	int err = 0;

	for (size_t i = 0; i < n && !err;) {
		struct branch *plain = &raw[i];
		size_t n_plain = complete_plain(j, plain, n - i);

		if (n_plain >= ALONE_MIN) {
			err = hand_on(j);
			if (!err)
				err = j->request->take(j->request->ctx, plain, n_plain);
		} else if (n_plain) {
			memcpy(&j->out[j->n_out], plain, n_plain * sizeof(*plain));
			j->n_out += n_plain;
		}
		i += n_plain;
		if (i < n && !err)
			err = take_other(j, &raw[i++]);
		if (j->n_out > COPIED_MAX - ALONE_MIN - MOST_OF_ONE && !err)
			err = hand_on(j);
	}
	if (j->started && j->time_ns > j->totals->last_ns)
		j->totals->last_ns = j->time_ns;
	if (err)
		return err;
	end_stretch(j);
	return hand_on(j);
}

int decode__run(const struct decode_request *request)
{
	_cleanup_free_ struct branch *out = malloc(COPIED_MAX * sizeof(*out));
	struct joiner joiner = joiner_of(request, out);

	return out ? regions__run(request, joiner__take, &joiner) : -ENOMEM;
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

static int intervals__add(struct intervals *p, const struct branch *b)
{
	struct interval *interval = p->is_known ? &p->all.v[p->all.n - 1] : NULL;
	uint64_t ns = b->time_ns ? tsc__to_ns(b->time_ns, p->aux->tsc, &p->rec->pt) : 0;

	if (!interval) {
		p->unknown_insns += b->n_insns;
		if (b->kind != ENTRY_NOTE)
			return 0;
		return VEC_ADD(&p->events, (struct pt_note){.time_ns = ns,
							    .ip = b->from,
							    .value = b->to,
							    .cpu = p->aux->cpu,
							    .kind = b->reason});
	}
	if (VEC_ADD(&interval->branches, *b))
		return -ENOMEM;
	if (!interval->start_ns)
		interval->start_ns = ns;
	if (ns > interval->end_ns)
		interval->end_ns = ns;
	return 0;
}

/* A raw_branches_fn. 0 or -ENOMEM. */
static int intervals__take(void *intervals, struct branch *branches, size_t n)
{
	struct intervals *p = intervals;

	for (const struct branch *b = branches; b < branches + n; b++) {
		const struct rec_switch *who = (const void *)(uintptr_t)b->from;
		struct branch rest = {
			.kind = RAW_REST, .n_insns = b->n_insns, .n_branches = b->n_branches};
		struct interval *interval;

		if (b->kind != RAW_WHO) {
			if (intervals__add(p, b))
				return -ENOMEM;
			continue;
		}
		/* Instructions that ran before the switch. */
		if (b->n_insns && intervals__add(p, &rest))
			return -ENOMEM;
		/* The thread may be the same: each region tells which one it begins with. */
		if (p->is_known && p->all.v[p->all.n - 1].who == who)
			continue;
		p->is_known = false;
		if (!who)
			continue;
		interval = VEC_PUSH(&p->all);
		if (!interval)
			return -ENOMEM;
		*interval = (struct interval){.who = who, .snapshot = p->snapshot, .aux = p->aux};
		p->is_known = true;
	}
	return 0;
}

ORDER(by_thread_and_time, struct interval,
      COMPARE(x->who->tid, y->who->tid)
	      ?: COMPARE(x->snapshot, y->snapshot) ?: COMPARE(x->start_ns, y->start_ns))

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

/* ---- rings of CPUs, divided among threads */

/* Decodes the CPU's ring, the i-th of the recording, to intervals. */
static int cut_ring(struct decode_request *request, size_t i, struct intervals *intervals,
		    struct switches *switches)
{
	const struct recording *rec = request->rec;
	const struct rec_aux *aux = &rec->aux.v[i], *last = NULL;
	size_t before = intervals->all.n;
	unsigned int snapshot = 0;
	int err;

	/*
	 * Counts the snapshots before this ring. In a recording by mtbpf the rings of one freeze
	 * have the same time, and empty rings are left out. perf reads one ring after the other:
	 * there the n-th ring of a CPU belongs to the n-th snapshot.
	 */
	for (const struct rec_aux *a = rec->aux.v; a <= aux; a++) {
		if (a->tid)
			continue;
		if (rec->frozen_ns)
			snapshot += last && a->tsc != last->tsc;
		else
			snapshot += a < aux && a->cpu == aux->cpu;
		last = a;
	}
	request->aux = intervals->aux = aux;
	request->switches = switches;
	intervals->snapshot = snapshot;
	intervals->is_known = false;
	err = regions__run(request, intervals__take, intervals);
	if (!err && intervals->all.n > before)
		err = switches__set_start(switches, aux->cpu, snapshot,
					  intervals->all.v[before].start_ns);
	return err;
}

/* Hands on the branches of one thread, which are in these n intervals. */
static int join_intervals(struct thread *t, const struct interval *intervals, size_t n,
			  const struct switches *switches)
{
	_cleanup_free_ struct branch *out = malloc(COPIED_MAX * sizeof(*out));
	struct branch lost = {.kind = BRANCH_GAP, .reason = GAP_LOST};
	struct rec_aux aux = {
		.pid = intervals->who->pid, .tid = intervals->who->tid, .tsc = intervals->aux->tsc};
	int err = thread__begin(t, aux.pid, aux.tid);
	struct joiner joiner = joiner_of(&t->request, out);

	t->request.aux = &aux;
	if (!out)
		err = -ENOMEM;
	for (const struct interval *in = intervals; in < intervals + n && !err; in++) {
		if (in > intervals && in->snapshot != in[-1].snapshot) {
			err = thread__next_snapshot(t, in[-1].end_ns);
			joiner = joiner_of(&t->request, out);
		} else if (in > intervals && switches__ran_unseen(switches, in->who, in->snapshot,
								  in[-1].end_ns, in->start_ns)) {
			/* Meanwhile the thread ran on a CPU whose ring has lost that time. */
			err = joiner__take(&joiner, &lost, 1);
		}
		aux.cpu = in->aux->cpu;
		if (!err)
			err = joiner__take(&joiner, in->branches.v, in->branches.n);
		meter__add(t->request.meter, in->branches.n);
	}
	return thread__end(t, err);
}

static int decode_cpus(struct thread *t)
{
	const struct recording *rec = t->request.rec;
	struct meter_work work = {"sorting by thread", METER_BRANCHES, 0};
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
	if (!err) {
		VEC_EACH(&intervals.all, interval)
			work.total += interval->branches.n;
		meter__next(t->request.meter, &work);
		VEC_SORT(&intervals.all, by_thread_and_time);
	}
	for (size_t i = 0, n; i < intervals.all.n && !err; i += n) {
		const struct interval *first = &intervals.all.v[i];

		for (n = 1; i + n < intervals.all.n && first[n].who->tid == first->who->tid; n++)
			;
		err = join_intervals(t, first, n, switches);
	}
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
		pid_t tid = rec->aux.v[i].tid;
		size_t first = 0;

		while (rec->aux.v[first].tid != tid)
			first++;
		if (!tid)
			has_cpus = true;
		else if (first == i)
			err = decode_rings(&t, i);
	}
	return err || !has_cpus ? err : decode_cpus(&t);
}

/* Bytes of PT to decode at first: these mostly contain a PSB and a branch of the thread. */
#define LOOK_SIZE (16u << 10)

static void widen(struct decode_bounds *bounds, const struct decode_bounds *by)
{
	if (by->first_ns && (!bounds->first_ns || by->first_ns < bounds->first_ns))
		bounds->first_ns = by->first_ns;
	if (by->last_ns > bounds->last_ns)
		bounds->last_ns = by->last_ns;
}

/* A branches_fn that only adds the branches to the totals. */
static int ignore(void *ctx, struct branch *v, size_t n)
{
	return 0;
}

/*
 * Finds the first and the last time of known threads in the request's part of a ring; both are 0 if
 * it lacks a time. 0 or -ENOMEM.
 */
static int look_at(struct decode_request request, struct decode_bounds *bounds)
{
	struct intervals intervals = {.rec = request.rec, .aux = request.aux};
	struct decode_totals totals = {0};
	int err;

	*bounds = (struct decode_bounds){0};
	if (request.switches) {
		err = regions__run(&request, intervals__take, &intervals);
		VEC_EACH_WHILE(&intervals.all, in, !err)
			widen(bounds, &(struct decode_bounds){in->start_ns, in->end_ns});
		intervals__fini(&intervals);
		return err;
	}
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
		err = look_at(*request, bounds);
		if (err || bounds->first_ns || part.size == aux->size)
			return err;
		part.size *= 4;
	}
}

int decode__find_bounds(const struct recording *rec, struct images *images,
			struct decode_bounds *bounds)
{
	struct switches *switches = switches__new(rec);
	struct decode_request request = {.rec = rec, .images = images, .jobs = 1};
	int err = switches ? 0 : -ENOMEM;

	*bounds = (struct decode_bounds){0};
	VEC_EACH_WHILE(&rec->aux, aux, !err) {
		struct decode_bounds begin = {0}, end = {0};

		request.switches = aux->tid ? NULL : switches;
		err = look_at_end(&request, aux, false, &begin);
		if (!err && aux->size > LOOK_SIZE && begin.first_ns)
			err = look_at_end(&request, aux, true, &end);
		widen(bounds, &begin);
		widen(bounds, &end);
	}
	switches__free(switches);
	return err;
}
