// SPDX-License-Identifier: MIT
#include "sampled/goroutines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stack/stack.h"
#include "target/code_map.h"
#include "target/go_runtime.h"
#include "util/vec.h"

/* No goroutine that leaves its thread goes on until the end; from still_ns on none runs. */
struct world_stop {
	uint32_t tgid;
	uint64_t start_ns, still_ns, end_ns; /* ascending */
};

struct interval {
	uint64_t start_ns, end_ns;
};

/* A thread's calls[index]. */
struct shown {
	const struct call_tree *thread;
	size_t index;
	uint64_t start_ns;
};

struct goroutine_calls {
	VEC(const struct mt_entry *) all;
	VEC(const struct mt_entry *) ready;    /* who made whom ready; in the same order */
	VEC(const struct rec_sample *) stacks; /* by thread and time; empty if `ready` is */
	VEC(struct world_stop) stops;	       /* by process and time */
	/* Slices of threads that show calls of one function of a process, by time. */
	struct {
		uint32_t tgid;
		const struct function *function;
		VEC(struct shown) all;
		bool has_others; /* some belong to calls that are not in the log */
	} shown;
};

/* The threads that a call began and ended in: a goroutine goes on wherever there is room. */
struct ran_in {
	pid_t first, last;
};

/* One goroutine's way from its entries to its tree. */
struct goroutine {
	const struct recording *rec;
	struct goroutine_calls *calls;
	const struct thread_trees *threads;
	uint32_t number;	   /* as goroutine_of() has it: mt_entry.goroutine */
	VEC(struct call) exact;	   /* the calls that were measured; the tree has more */
	VEC(struct ran_in) ran_in; /* of these */
	VEC(const char *) reasons; /* of these: what a park waits for, or NULL */
	VEC(uint32_t) at;	   /* in the tree: the calls that are open, by depth */
	uint64_t noted_ns;
	struct call_tree tree;
	struct code_map *map;
	size_t next_map;    /* see images__apply() */
	VEC(uint32_t) open; /* indices of calls, outermost first */
};

/* By process and goroutine, then by time; of two at a time the outer one first. */
static int compare(const void *a, const void *b)
{
	const struct mt_entry *x = *(const struct mt_entry *const *)a;
	const struct mt_entry *y = *(const struct mt_entry *const *)b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->goroutine != y->goroutine)
		return x->goroutine < y->goroutine ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/* By thread, then by time. */
static int compare_stacks(const void *a, const void *b)
{
	const struct rec_sample *x = *(const struct rec_sample *const *)a;
	const struct rec_sample *y = *(const struct rec_sample *const *)b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int collect_stacks(struct goroutine_calls *calls, const struct recording *rec)
{
	for (size_t i = 0; i < rec->samples.n && calls->ready.n; i++)
		if (VEC_ADD(&calls->stacks, &rec->samples.v[i]))
			return -ENOMEM;
	VEC_SORT(&calls->stacks, compare_stacks);
	return 0;
}

static int collect(struct goroutine_calls *calls, const struct recording *rec)
{
	for (size_t i = 0; i < rec->entries.n; i++) {
		const struct mt_entry *entry = &rec->entries.v[i];

		if (!entry->goroutine)
			continue;
		if (entry->kind == MT_ENTRY_READY ? VEC_ADD(&calls->ready, entry)
						  : VEC_ADD(&calls->all, entry))
			return -ENOMEM;
	}
	VEC_SORT(&calls->all, compare);
	VEC_SORT(&calls->ready, compare);
	return collect_stacks(calls, rec);
}

#define STOP_WORLD  "runtime.stopTheWorldWithSema"
#define START_WORLD "runtime.startTheWorldWithSema"

static int compare_stops(const void *a, const void *b)
{
	const struct world_stop *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The latest stop of the process before the moment lasts until then. */
static void end_stop(struct goroutine_calls *calls, const struct mt_entry *start)
{
	const struct world_stop key = {.tgid = start->tgid, .start_ns = start->start_ns};
	size_t n = VEC_PARTITION_POINT(&calls->stops, s, compare_stops(s, &key) <= 0);
	struct world_stop *stop = n ? &calls->stops.v[n - 1] : NULL;

	if (stop && stop->tgid == start->tgid && start->start_ns < stop->end_ns)
		stop->end_ns = start->start_ns;
}

/*
 * The process's calls that stop and start the world run on the scheduler's stack: they
 * are removed from calls->all, since they belong to no goroutine.
 */
static int take_stops(struct goroutine_calls *calls, size_t from, size_t n, struct code_map *map,
		      uint64_t frozen_ns)
{
	VEC(const struct mt_entry *) starts = {0};
	size_t kept = from;
	int err = 0;

	for (size_t i = from; i < from + n && !err; i++) {
		const struct mt_entry *e = calls->all.v[i];
		const struct world_stop stop = {.tgid = e->tgid,
						.start_ns = e->start_ns,
						.still_ns = e->end_ns ? e->end_ns : frozen_ns,
						.end_ns = frozen_ns};
		struct code_place place;
		const char *name = code_map__find(map, e->ip, &place) ? place.function->name : "";

		if (!strcmp(name, STOP_WORLD))
			err = VEC_ADD(&calls->stops, stop);
		else if (!strcmp(name, START_WORLD))
			err = VEC_ADD(&starts, e);
		else
			calls->all.v[kept++] = e;
	}
	if (calls->stops.n)
		VEC_SORT(&calls->stops, compare_stops);
	for (size_t i = 0; i < starts.n; i++)
		end_stop(calls, starts.v[i]);
	VEC_FINI(&starts);
	memmove(&calls->all.v[kept], &calls->all.v[from + n],
		(calls->all.n - from - n) * sizeof(*calls->all.v));
	calls->all.n -= from + n - kept;
	return err ? -ENOMEM : 0;
}

static int find_stops(struct goroutine_calls *calls, const struct recording *rec,
		      struct images *images)
{
	int err = 0;

	for (size_t i = 0, n; i < calls->all.n && !err; i = n) {
		uint32_t tgid = calls->all.v[i]->tgid;
		struct code_map *map = code_map__new();
		size_t next_map = 0, all = calls->all.n;

		for (n = i; n < calls->all.n && calls->all.v[n]->tgid == tgid; n++)
			;
		err = map ? images__apply(images, (pid_t)tgid, UINT64_MAX, &next_map, map)
			  : -ENOMEM;
		if (!err)
			err = take_stops(calls, i, n - i, map, rec->frozen_ns);
		n -= all - calls->all.n;
		code_map__free(map);
	}
	return err;
}

/* When the snapshot ended that it is in. */
static uint64_t frozen_after(const struct recording *rec, uint64_t time_ns)
{
	uint64_t end_ns = rec->frozen_ns > time_ns ? rec->frozen_ns : time_ns;

	for (size_t i = 0; i < rec->hits.n; i++)
		if (rec->hits.v[i].time_ns >= time_ns && rec->hits.v[i].time_ns < end_ns)
			end_ns = rec->hits.v[i].time_ns;
	return end_ns;
}

#define PARK "runtime.gopark"

static bool is_park(const struct call *call)
{
	return call->function && !strcmp(call->function->name, PARK);
}

static struct call make_call(const struct goroutine *g, const struct mt_entry *entry)
{
	bool is_known = entry->end_ns >= entry->start_ns && entry->end_ns;
	struct call call = {.start_ns = entry->start_ns,
			    .end_ns = is_known ? entry->end_ns
					       : frozen_after(g->rec, entry->start_ns),
			    .entry_ip = entry->ip,
			    .kind = CALL_FUNCTION,
			    .flags = CALL_SAMPLED,
			    .parent = CALL_NO_PARENT};
	struct code_place place;

	if (!is_known || entry->kind == MT_ENTRY_LEFT)
		call.flags |= CALL_INFERRED_END;
	if (code_map__find(g->map, entry->ip, &place))
		call.function = place.function;
	return call;
}

static void end_before(struct goroutine *g, uint64_t time_ns)
{
	while (g->open.n && g->exact.v[g->open.v[g->open.n - 1]].end_ns <= time_ns)
		g->open.n--;
}

static int add_call(struct goroutine *g, const struct mt_entry *entry)
{
	struct call call = make_call(g, entry), *out;
	pid_t first = (pid_t)(entry->returns_to >> 8);
	struct ran_in *ran_in;
	const char **reason;
	uint32_t *open;

	end_before(g, call.start_ns);
	call.depth = (uint32_t)g->open.n;
	if (g->open.n) {
		const struct call *parent;

		call.parent = g->open.v[g->open.n - 1];
		parent = &g->exact.v[call.parent];
		/* Not beyond what called it: that was left, and it is not known when. */
		if (call.end_ns > parent->end_ns) {
			call.end_ns = parent->end_ns;
			call.flags |= CALL_INFERRED_END;
		}
	}
	out = VEC_PUSH(&g->exact);
	ran_in = out ? VEC_PUSH(&g->ran_in) : NULL;
	reason = ran_in ? VEC_PUSH(&g->reasons) : NULL;
	open = reason ? VEC_PUSH(&g->open) : NULL;
	if (!open)
		return -ENOMEM;
	*ran_in = (struct ran_in){first ? first : (pid_t)entry->tid, (pid_t)entry->tid};
	*reason = is_park(&call)
			  ? go_runtime__wait_reason(elf_image__go_minor(call.function->image),
						    entry->returns_to & 0xff)
			  : NULL;
	*out = call;
	*open = (uint32_t)(g->exact.n - 1);
	return 0;
}

/* Into the tree, in pre-order. */
static int emit(struct goroutine *g, const struct call *call, uint32_t depth)
{
	struct call *out = VEC_PUSH(&g->tree.calls);
	uint32_t *at;

	g->at.n = depth;
	at = out ? VEC_PUSH(&g->at) : NULL;
	if (!at)
		return -ENOMEM;
	*out = *call;
	out->depth = depth;
	out->parent = depth ? g->at.v[depth - 1] : CALL_NO_PARENT;
	*at = (uint32_t)(g->tree.calls.n - 1);
	return 0;
}

static int emit_wait(struct goroutine *g, const char *text)
{
	struct waits_for *wait = text ? VEC_PUSH(&g->tree.waits) : NULL;

	if (wait)
		*wait = (struct waits_for){
			.call = (uint32_t)(g->tree.calls.n - 1), .fd = -1, .text = text};
	return wait || !text ? 0 : -ENOMEM;
}

static int emit_not_recorded(struct goroutine *g, uint64_t start_ns, uint64_t end_ns,
			     uint32_t depth)
{
	const struct call call = {.start_ns = start_ns,
				  .end_ns = end_ns,
				  .kind = CALL_NOT_RECORDED,
				  .flags = CALL_SAMPLED};

	return start_ns < end_ns ? emit(g, &call, depth) : 0;
}

static int emit_stopped(struct goroutine *g, uint64_t start_ns, uint64_t end_ns, uint32_t depth)
{
	const struct call call = {.start_ns = start_ns,
				  .end_ns = end_ns,
				  .kind = CALL_OFF_CPU,
				  .reason = OFF_BLOCKED,
				  .flags = CALL_SAMPLED};
	int err = emit(g, &call, depth);

	return err ? err : emit_wait(g, "stop-the-world");
}

/*
 * Nothing shows the goroutine in that time. left_ns: since then it is known to run no more; 0: it
 * may have run. Who has left its thread while the world was being stopped does not go on until it
 * is started again.
 */
static int emit_unknown(struct goroutine *g, uint64_t start_ns, uint64_t end_ns, uint32_t depth,
			uint64_t left_ns)
{
	const struct world_stop *stops = g->calls->stops.v;
	size_t i = VEC_PARTITION_POINT(
		&g->calls->stops, s,
		s->tgid < (uint32_t)g->tree.pid ||
			(s->tgid == (uint32_t)g->tree.pid && s->end_ns <= start_ns));
	int err = 0;

	for (; i < g->calls->stops.n && stops[i].tgid == (uint32_t)g->tree.pid && !err; i++) {
		uint64_t from =
			left_ns >= stops[i].start_ns ? stops[i].start_ns : stops[i].still_ns;
		uint64_t to = stops[i].end_ns < end_ns ? stops[i].end_ns : end_ns;

		if (from < start_ns)
			from = start_ns;
		if (from >= to)
			continue;
		err = emit_not_recorded(g, start_ns, from, depth);
		if (!err)
			err = emit_stopped(g, from, to, depth);
		start_ns = to;
	}
	return err ? err : emit_not_recorded(g, start_ns, end_ns, depth);
}

static const struct call_tree *find_thread(const struct goroutine *g, pid_t tid)
{
	for (size_t i = 0; i < g->threads->n; i++)
		if (g->threads->v[i].tid == tid && g->threads->v[i].pid == g->tree.pid)
			return &g->threads->v[i];
	return NULL;
}

/* Who kept the thread waiting there, and for what, is told of the copy as well. */
static int copy_notes(struct goroutine *g, const struct call_tree *thread, const struct call *call)
{
	const struct waits_for *wait = call_tree__waits_for(thread, call);
	const struct done_by *by = call_tree__done_by(thread, call);
	const struct done_by *end = by ? thread->done_by.v + thread->done_by.n : NULL;
	uint32_t from = (uint32_t)(call - thread->calls.v), to = (uint32_t)(g->tree.calls.n - 1);

	if (wait) {
		struct waits_for *out = VEC_PUSH(&g->tree.waits);

		if (!out)
			return -ENOMEM;
		*out = *wait;
		out->call = to;
	}
	for (; by && by < end && by->call == from; by++) {
		struct done_by *out = VEC_PUSH(&g->tree.done_by);

		if (!out)
			return -ENOMEM;
		*out = *by;
		out->call = to;
	}
	return 0;
}

/* Or a variant of it: "runtime.mcall.abi0". */
static bool is_named(const struct function *function, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(function->name, name, n) &&
	       (!function->name[n] || function->name[n] == '.');
}

/*
 * The runtime looks for another goroutine on the thread's own stack, whose frame pointers lead on
 * to the one that it left.
 */
static bool is_scheduler(const struct function *function)
{
	static const char *const names[] = {
		"runtime.mcall",	"runtime.park_m",	"runtime.schedule",
		"runtime.findRunnable", "runtime.findrunnable", "runtime.goexit0",
		"runtime.gosched_m",	"runtime.gopreempt_m",	"runtime.goschedImpl",
		"runtime.stopm",	"runtime.exitsyscall0", "runtime.netpoll",
		"runtime.epollwait",
	};

	for (size_t i = 0; function && i < sizeof(names) / sizeof(names[0]); i++)
		if (is_named(function, names[i]))
			return true;
	return false;
}

/* Each call of it is among the exact ones: what stacks show of it here is another goroutine's. */
static bool is_measured(const struct goroutine *g, const struct call *call)
{
	for (size_t i = 0; call->function && i < g->exact.n && i < 256; i++)
		if (g->exact.v[i].function == call->function)
			return true;
	return false;
}

/* When it went to the scheduler, at the latest: stacks tell that to a sample. */
static uint64_t left_at(const struct goroutine *g, const struct call *scheduler)
{
	uint64_t ns = scheduler->flags & CALL_INFERRED_START ? g->rec->sample_period_ns : 0;

	return scheduler->start_ns + ns < scheduler->end_ns ? scheduler->start_ns + ns
							    : scheduler->end_ns;
}

/* What the thread's calls[i] called, within [start, end). */
static int copy_callees(struct goroutine *g, const struct call_tree *thread, size_t i,
			uint64_t start_ns, uint64_t end_ns, uint32_t depth)
{
	uint32_t base = thread->calls.v[i].depth + 1, left = UINT32_MAX;
	int err = 0;

	for (i++; i < thread->calls.n && thread->calls.v[i].depth >= base && !err; i++) {
		struct call call = thread->calls.v[i];
		bool in_scheduler = is_scheduler(call.function);
		uint64_t left_ns = in_scheduler ? left_at(g, &call) : 0;

		/* Of what lies in the scheduler nothing is the call's. */
		if (call.depth <= left)
			left = UINT32_MAX;
		if (call.end_ns <= start_ns || call.start_ns >= end_ns || call.depth > left)
			continue;
		if (call.start_ns < start_ns)
			call.start_ns = start_ns;
		if (call.end_ns > end_ns)
			call.end_ns = end_ns;
		if (in_scheduler || is_measured(g, &call)) {
			left = call.depth;
			err = emit_unknown(g, call.start_ns, call.end_ns, depth + call.depth - base,
					   left_ns);
			continue;
		}
		err = emit(g, &call, depth + call.depth - base);
		if (!err)
			err = copy_notes(g, thread, &thread->calls.v[i]);
	}
	return err;
}

/* Interrupts of the thread take time from the goroutine that it runs. */
static int copy_interrupts(struct goroutine *g, const struct call_tree *thread, uint64_t from,
			   uint64_t to)
{
	size_t i = VEC_PARTITION_POINT(&thread->interrupts, m, m->end_ns <= from);
	int err = 0;

	for (; i < thread->interrupts.n && thread->interrupts.v[i].start_ns < to && !err; i++) {
		struct interrupts_mark mark = thread->interrupts.v[i];
		uint64_t before = interrupts_mark__until(&mark, from);

		mark.ns = interrupts_mark__until(&mark, to) - before;
		if (mark.start_ns < from)
			mark.start_ns = from;
		if (mark.end_ns > to)
			mark.end_ns = to;
		err = call_tree__add_interrupts(&g->tree, &mark);
	}
	return err;
}

/*
 * A goroutine that is preempted in a function's prologue goes to the scheduler by morestack(), at
 * which frame pointers end since Go 1.21: the scheduler's slice lies in no call of the goroutine's
 * then, and begins as those of the thread's calls[i] end. NULL: there is none.
 */
static const struct call *find_scheduler_behind(const struct call_tree *thread, size_t i)
{
	const struct call *calls = thread->calls.v;
	uint64_t end_ns = calls[i].end_ns;

	for (i++; i < thread->calls.n && calls[i].parent != CALL_NO_PARENT; i++)
		;
	if (i == thread->calls.n || !calls[i].function ||
	    !is_named(calls[i].function, "runtime.morestack"))
		return NULL;
	for (; i < thread->calls.n && calls[i].start_ns == end_ns; i++)
		if (is_scheduler(calls[i].function))
			return &calls[i];
	return NULL;
}

/*
 * The scheduler's first slice in the thread's calls[i], or behind it, if that begins before the
 * end. NULL: none.
 */
static const struct call *find_scheduler(const struct call_tree *thread, size_t i, uint64_t end_ns)
{
	const struct call *calls = thread->calls.v;
	size_t in = i;

	for (in++; in < thread->calls.n && calls[in].depth > calls[i].depth &&
		   calls[in].start_ns < end_ns;
	     in++)
		if (is_scheduler(calls[in].function))
			return &calls[in];
	return calls[i].end_ns < end_ns ? find_scheduler_behind(thread, i) : NULL;
}

/* A part of the innermost call, at depth - 1, for which slices are looked for. */
struct stretch {
	const struct function *function;
	uint64_t entry_ip;
	uint64_t start_ns, end_ns;
	uint32_t depth;
	uint64_t left_ns; /* as emit_unknown() has it */
};

/*
 * What the thread's stacks show of the stretch from *done_ns on. Where they do not show the call
 * the thread was at something else, and of this nothing is known. moves: it ended in another
 * thread, so that only what begins the stretch is its own; up to *done_ns then.
 */
static int fill_from(struct goroutine *g, struct stretch *s, pid_t tid, bool moves)
{
	const struct call_tree *thread = find_thread(g, tid);
	size_t n = thread ? VEC_PARTITION_POINT(&thread->calls, c, c->start_ns < s->end_ns) : 0;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		const struct call *call = &thread->calls.v[i], *scheduler;
		uint64_t from = call->start_ns > s->start_ns ? call->start_ns : s->start_ns;
		uint64_t to = call->end_ns < s->end_ns ? call->end_ns : s->end_ns;

		if (call->function != s->function || call->kind != CALL_FUNCTION || from >= to)
			continue;
		if (moves && from > s->start_ns + g->rec->sample_period_ns)
			break;
		scheduler = moves ? find_scheduler(thread, i, to) : NULL;
		if (scheduler)
			to = scheduler->start_ns > from ? scheduler->start_ns : from;
		err = emit_unknown(g, s->start_ns, from, s->depth, s->left_ns);
		if (!err)
			err = copy_callees(g, thread, i, from, to, s->depth);
		if (!err)
			err = copy_interrupts(g, thread, from, to);
		s->start_ns = to;
		s->left_ns = scheduler ? left_at(g, scheduler) : 0;
		if (moves)
			break;
	}
	return err;
}

static int compare_shown(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int compare_intervals(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

typedef VEC(struct interval) interval_vec;

/* Finds the times in which any goroutine had a call open that was entered there, without overlaps.
 */
static int find_open(const struct goroutine *g, uint64_t entry_ip, interval_vec *open)
{
	size_t n = 0;

	for (size_t i = 0; i < g->calls->all.n; i++) {
		const struct mt_entry *e = g->calls->all.v[i];

		if (e->tgid == (uint32_t)g->tree.pid && e->ip == entry_ip &&
		    VEC_ADD(open,
			    (struct interval){e->start_ns, e->end_ns ? e->end_ns : UINT64_MAX}))
			return -ENOMEM;
	}
	VEC_SORT(open, compare_intervals);
	for (size_t i = 0; i < open->n; i++) {
		struct interval *last = n ? &open->v[n - 1] : NULL;

		if (!last || open->v[i].start_ns > last->end_ns)
			open->v[n++] = open->v[i];
		else if (open->v[i].end_ns > last->end_ns)
			last->end_ns = open->v[i].end_ns;
	}
	open->n = n;
	return 0;
}

static uint64_t time_outside(const interval_vec *open, const struct call *call)
{
	uint64_t ns = call->end_ns - call->start_ns;
	size_t i = VEC_PARTITION_POINT(open, s, s->end_ns <= call->start_ns);

	for (; i < open->n && open->v[i].start_ns < call->end_ns; i++) {
		const struct interval *s = &open->v[i];
		uint64_t from = s->start_ns > call->start_ns ? s->start_ns : call->start_ns;
		uint64_t to = s->end_ns < call->end_ns ? s->end_ns : call->end_ns;

		ns -= to - from;
	}
	return ns;
}

/* Samples may show the begin or end of a call this many periods too early, or too late. */
#define EDGE_PERIODS 4

/* Calls that began before they were probed are in no log; or that one has been overwritten. */
static int look_for_others(struct goroutine *g, uint64_t entry_ip)
{
	struct goroutine_calls *calls = g->calls;
	interval_vec open = {0};
	int err = find_open(g, entry_ip, &open);

	calls->shown.has_others = calls->all.n >= MT_ENTRY_LOG;
	for (size_t i = 0; i < calls->shown.all.n && !err; i++) {
		const struct shown *shown = &calls->shown.all.v[i];

		if (time_outside(&open, &shown->thread->calls.v[shown->index]) >
		    EDGE_PERIODS * g->rec->sample_period_ns)
			calls->shown.has_others = true;
	}
	VEC_FINI(&open);
	return err;
}

static int find_shown(struct goroutine *g, const struct function *function, uint64_t entry_ip)
{
	struct goroutine_calls *calls = g->calls;

	if (calls->shown.function == function && calls->shown.tgid == (uint32_t)g->tree.pid)
		return 0;
	calls->shown.function = function;
	calls->shown.tgid = (uint32_t)g->tree.pid;
	calls->shown.all.n = 0;
	for (size_t t = 0; t < g->threads->n; t++) {
		const struct call_tree *thread = &g->threads->v[t];

		for (size_t i = 0; thread->pid == g->tree.pid && i < thread->calls.n; i++) {
			const struct call *call = &thread->calls.v[i];

			if (call->function == function && call->kind == CALL_FUNCTION &&
			    VEC_ADD(&calls->shown.all, (struct shown){thread, i, call->start_ns}))
				return -ENOMEM;
		}
	}
	VEC_SORT(&calls->shown.all, compare_shown);
	return look_for_others(g, entry_ip);
}

/*
 * No other goroutine of the process has a call of the function open then: what threads show of it
 * is this one's, on whichever thread.
 */
static bool is_only_one(const struct goroutine *g, const struct stretch *s)
{
	if (g->calls->shown.has_others)
		return false;
	for (size_t i = 0; i < g->calls->all.n; i++) {
		const struct mt_entry *e = g->calls->all.v[i];

		if (e->tgid == (uint32_t)g->tree.pid && e->goroutine != g->number &&
		    e->ip == s->entry_ip && e->start_ns < s->end_ns &&
		    (!e->end_ns || e->end_ns > s->start_ns))
			return false;
	}
	return true;
}

/* A thread's slice of a call, and the scheduler's slice that ends it; NULL: none does. */
struct part {
	const struct shown *shown;
	uint64_t start_ns, end_ns;
	const struct call *scheduler;
};

/* The first part from then on in which the scheduler does not run. False: there is none. */
static bool find_part(const struct shown *shown, uint64_t since_ns, struct part *part)
{
	const struct call *calls = shown->thread->calls.v;
	const struct call *call = &calls[shown->index];

	*part = (struct part){.shown = shown, .start_ns = call->start_ns, .end_ns = call->end_ns};
	if (part->start_ns < since_ns)
		part->start_ns = since_ns;
	for (const struct call *in = call + 1;
	     in < calls + shown->thread->calls.n && in->depth > call->depth && !part->scheduler;
	     in++) {
		if (!is_scheduler(in->function) || in->end_ns <= part->start_ns)
			continue;
		if (in->start_ns > part->start_ns)
			part->scheduler = in;
		else
			part->start_ns = in->end_ns;
	}
	if (!part->scheduler)
		part->scheduler = find_scheduler_behind(shown->thread, shown->index);
	if (part->scheduler)
		part->end_ns = part->scheduler->start_ns;
	return part->start_ns < part->end_ns;
}

/* The first part that any thread shows of the stretch. False: there is none. */
static bool find_next(const struct goroutine *g, const struct stretch *s, struct part *found)
{
	struct part part;

	*found = (struct part){.start_ns = s->end_ns};
	for (size_t i = 0; i < g->calls->shown.all.n; i++) {
		const struct shown *shown = &g->calls->shown.all.v[i];

		if (shown->start_ns >= found->start_ns)
			break;
		if (find_part(shown, s->start_ns, &part) && part.start_ns < found->start_ns)
			*found = part;
	}
	if (found->end_ns > s->end_ns) {
		found->end_ns = s->end_ns;
		found->scheduler = NULL;
	}
	return found->shown;
}

/* When it went to the scheduler, in whose slice it is first seen from then on; 0: in none. */
static uint64_t find_left(const struct goroutine *g, uint64_t start_ns, uint64_t end_ns)
{
	for (size_t i = 0; i < g->calls->shown.all.n; i++) {
		const struct shown *shown = &g->calls->shown.all.v[i];
		const struct call *call = &shown->thread->calls.v[shown->index], *scheduler;

		if (call->start_ns >= end_ns)
			break;
		scheduler = find_scheduler(shown->thread, shown->index, end_ns);
		if (scheduler && call->end_ns > start_ns && scheduler->end_ns > start_ns)
			return left_at(g, scheduler);
	}
	return 0;
}

static int fill_unshown(struct goroutine *g, const struct stretch *s, uint64_t end_ns)
{
	uint64_t left_ns = s->left_ns ? s->left_ns : find_left(g, s->start_ns, end_ns);

	return emit_unknown(g, s->start_ns, end_ns, s->depth, left_ns);
}

static int fill_from_all(struct goroutine *g, struct stretch *s)
{
	struct part part;
	int err = 0;

	while (!err && s->start_ns < s->end_ns && find_next(g, s, &part)) {
		const struct shown *shown = part.shown;

		err = fill_unshown(g, s, part.start_ns);
		if (!err)
			err = copy_callees(g, shown->thread, shown->index, part.start_ns,
					   part.end_ns, s->depth);
		if (!err)
			err = copy_interrupts(g, shown->thread, part.start_ns, part.end_ns);
		s->start_ns = part.end_ns;
		s->left_ns = part.scheduler ? left_at(g, part.scheduler) : 0;
	}
	return err ? err : fill_unshown(g, s, s->end_ns);
}

/* It began in one thread, and ended in the other. */
static int fill(struct goroutine *g, struct stretch *s, struct ran_in ran_in)
{
	/* A shorter call is hardly ever in two threads. */
	bool is_long = s->end_ns - s->start_ns > g->rec->sample_period_ns;
	int err = is_long ? find_shown(g, s->function, s->entry_ip) : 0;

	if (err || (is_long && is_only_one(g, s)))
		return err ? err : fill_from_all(g, s);
	err = ran_in.first != ran_in.last ? fill_from(g, s, ran_in.first, true) : 0;
	if (!err)
		err = fill_from(g, s, ran_in.last, false);
	return err ? err : emit_unknown(g, s->start_ns, s->end_ns, s->depth, s->left_ns);
}

/* Of a call that was measured; in a park nothing runs. */
static int fill_gap(struct goroutine *g, uint32_t call, struct ran_in ran_in, uint64_t start_ns,
		    uint64_t end_ns)
{
	const struct call *in = &g->exact.v[call];
	struct stretch stretch = {.function = in->function,
				  .entry_ip = in->entry_ip,
				  .start_ns = start_ns,
				  .end_ns = end_ns,
				  .depth = in->depth + 1};

	return start_ns >= end_ns || is_park(in) ? 0 : fill(g, &stretch, ran_in);
}

/* The last time that somebody made it ready in that park; NULL: nobody is known to have. */
static const struct mt_entry *find_ready(const struct goroutine *g, const struct call *park)
{
	const struct mt_entry end = {
		.tgid = (uint32_t)g->tree.pid, .goroutine = g->number, .start_ns = park->end_ns};
	const struct mt_entry *at = &end, *found;
	size_t n = VEC_PARTITION_POINT(&g->calls->ready, r, compare(r, &at) <= 0);

	found = n ? g->calls->ready.v[n - 1] : NULL;
	return found && found->tgid == end.tgid && found->goroutine == end.goroutine &&
			       found->start_ns >= park->start_ns
		       ? found
		       : NULL;
}

/* Packages whose functions make goroutines ready on behalf of their callers. */
static bool is_helper(const struct function *function)
{
	/* Go 1.27: "_.goready.func1", a closure of a function that was inlined, without its package. */
	return !strncmp(function->name, "_.", strlen("_.")) ||
	       !strncmp(function->name, "runtime.", strlen("runtime.")) ||
	       !strncmp(function->name, "sync.", strlen("sync.")) ||
	       !strncmp(function->name, "internal/", strlen("internal/"));
}

/*
 * The function that made it ready, by the stack of that moment: the innermost one that is no
 * helper. A goroutine of the runtime's own is named by its outermost function. NULL: not known.
 */
static const char *waker_function(const struct goroutine *g, const struct mt_entry *ready)
{
	const struct rec_sample key = {.tid = (pid_t)ready->tid, .time_ns = ready->start_ns};
	const struct rec_sample *at = &key, *s;
	size_t n = VEC_PARTITION_POINT(&g->calls->stacks, e, compare_stacks(e, &at) < 0);
	const struct function *outermost = NULL;

	if (n == g->calls->stacks.n || compare_stacks(&g->calls->stacks.v[n], &at))
		return NULL;
	s = g->calls->stacks.v[n];
	for (uint32_t i = 0; i < s->n_ips; i++) {
		uint64_t ip = g->rec->sample_ips.v[s->first_ip + i];
		struct code_place place;

		if (!code_map__find(g->map, i ? ip - 1 : ip, &place))
			break;
		if (!is_helper(place.function))
			return place.function->name;
		/* Behind these comes the goroutine that ran there before. */
		if (is_scheduler(place.function))
			return NULL;
		if (!is_named(place.function, "runtime.goexit") &&
		    !is_named(place.function, "runtime.systemstack"))
			outermost = place.function;
	}
	return ready->goid && outermost ? outermost->name : NULL;
}

static int emit_waker(struct goroutine *g, const struct mt_entry *ready, uint64_t ns)
{
	struct done_by *by = ready->goid == MT_GOID_UNKNOWN ? NULL : VEC_PUSH(&g->tree.done_by);

	if (!by)
		return ready->goid == MT_GOID_UNKNOWN ? 0 : -ENOMEM;
	*by = (struct done_by){.call = (uint32_t)(g->tree.calls.n - 1),
			       .pid = (pid_t)ready->tgid,
			       .tid = (pid_t)ready->tid,
			       .is_goroutine = true,
			       .in = waker_function(g, ready),
			       .ns = ns};
	if (ready->goid)
		snprintf(by->comm, sizeof(by->comm), "goroutine %" PRIu64, ready->goid);
	else
		snprintf(by->comm, sizeof(by->comm), "Go's runtime");
	return 0;
}

/* It waits until it is made ready, then for a thread. */
static int emit_park(struct goroutine *g, size_t i)
{
	struct call call = g->exact.v[i];
	const struct mt_entry *ready = find_ready(g, &call);
	uint64_t end_ns = call.end_ns;
	uint8_t flags = call.flags;
	int err;

	call.kind = CALL_OFF_CPU;
	call.reason = OFF_BLOCKED;
	call.function = NULL;
	call.entry_ip = 0;
	if (ready) {
		call.end_ns = ready->start_ns;
		call.flags &= (uint8_t)~CALL_INFERRED_END;
	}
	err = emit(g, &call, call.depth);
	if (!err)
		err = emit_wait(g, g->reasons.v[i]);
	if (!err && ready)
		err = emit_waker(g, ready, call.end_ns - call.start_ns);
	if (err || call.end_ns == end_ns)
		return err;
	call.start_ns = call.end_ns;
	call.end_ns = end_ns;
	call.reason = OFF_RUNNABLE;
	call.flags = flags;
	err = emit(g, &call, call.depth);
	return err ? err : emit_wait(g, "a thread of Go's runtime");
}

static int emit_exact(struct goroutine *g, size_t i)
{
	const struct call *call = &g->exact.v[i];

	return is_park(call) ? emit_park(g, i) : emit(g, call, call->depth);
}

/* The calls that were measured, and what is known of the time between them. */
static int finish_tree(struct goroutine *g)
{
	uint64_t now_ns = 0;
	uint32_t *open;
	pid_t tid = 0;
	int err = 0;

	g->open.n = 0;
	for (size_t i = 0; i <= g->exact.n && !err; i++) {
		const struct call *next = i < g->exact.n ? &g->exact.v[i] : NULL;

		while (g->open.n && !err && (!next || next->depth < g->open.n)) {
			uint32_t last = g->open.v[--g->open.n];

			err = fill_gap(g, last, (struct ran_in){tid, g->ran_in.v[last].last},
				       now_ns, g->exact.v[last].end_ns);
			now_ns = g->exact.v[last].end_ns;
			tid = g->ran_in.v[last].last;
		}
		if (err || !next)
			break;
		if (g->open.n)
			err = fill_gap(g, g->open.v[g->open.n - 1],
				       (struct ran_in){tid, g->ran_in.v[i].first}, now_ns,
				       next->start_ns);
		if (!err)
			err = emit_exact(g, i);
		open = err ? NULL : VEC_PUSH(&g->open);
		if (!open)
			return err ? err : -ENOMEM;
		*open = (uint32_t)i;
		now_ns = next->start_ns;
		tid = is_park(next) ? g->ran_in.v[i].last : g->ran_in.v[i].first;
	}
	return err;
}

/*
 * By Go's numbers, as far as they are known: the runtime uses a goroutine's memory for another one
 * when it has ended.
 */
static void name_strand(struct call_tree *tree, const struct mt_entry *const *entries, size_t n)
{
	uint64_t first = 0, last = 0;

	for (size_t i = 0; i < n; i++) {
		first = first ? first : entries[i]->goid;
		last = entries[i]->goid ? entries[i]->goid : last;
	}
	if (first != last)
		snprintf(tree->strand_name, sizeof(tree->strand_name),
			 "goroutines %" PRIu64 " to %" PRIu64, first, last);
	else
		snprintf(tree->strand_name, sizeof(tree->strand_name), "goroutine %" PRIu64,
			 first ? first : tree->strand);
}

static void name_tree(struct call_tree *tree, const struct recording *rec,
		      const struct mt_entry *const *entries, size_t n, uint32_t number)
{
	const struct mt_entry *first = entries[0];
	const struct rec_thread *known;

	tree->pid = (pid_t)first->tgid;
	tree->tid = (pid_t)first->tid;
	tree->strand = number;
	name_strand(tree, entries, n);
	known = recording__find_thread(rec, tree->pid, tree->tid);
	if (known)
		snprintf(tree->comm, sizeof(tree->comm), "%s", known->comm);
}

/* What is mapped was noted before the rings began; BPF's programs ran already. */
static uint64_t noted_ns(const struct recording *rec)
{
	uint64_t first_ns = rec->frozen_ns;

	for (size_t i = 0; i < rec->samples.n; i++)
		if (rec->samples.v[i].time_ns < first_ns)
			first_ns = rec->samples.v[i].time_ns;
	for (size_t i = 0; i < rec->scheds.n; i++)
		if (rec->scheds.v[i].time_ns < first_ns)
			first_ns = rec->scheds.v[i].time_ns;
	return first_ns;
}

static int follow_maps(struct goroutine *g, struct images *images, uint64_t time_ns)
{
	return images__apply(images, g->tree.pid, time_ns > g->noted_ns ? time_ns : g->noted_ns,
			     &g->next_map, g->map);
}

static int make_tree(struct goroutine *g, struct images *images,
		     const struct mt_entry *const *entries, size_t n)
{
	int err = g->map ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		err = follow_maps(g, images, entries[i]->start_ns);
		if (!err)
			err = add_call(g, entries[i]);
	}
	return err ? err : finish_tree(g);
}

static size_t count_same(const struct goroutine_calls *calls, size_t from)
{
	const struct mt_entry *first = calls->all.v[from];
	size_t n = 1;

	while (from + n < calls->all.n && calls->all.v[from + n]->tgid == first->tgid &&
	       calls->all.v[from + n]->goroutine == first->goroutine)
		n++;
	return n;
}

static int make_trees(struct goroutine_calls *calls, const struct recording *rec,
		      struct images *images, const struct thread_trees *threads, sampled_taker take,
		      void *ctx)
{
	const uint64_t since_ns = noted_ns(rec);
	uint32_t number = 0;
	int err = 0;

	for (size_t i = 0, n; i < calls->all.n && !err; i += n) {
		struct goroutine g = {.rec = rec,
				      .calls = calls,
				      .threads = threads,
				      .number = calls->all.v[i]->goroutine,
				      .noted_ns = since_ns,
				      .map = code_map__new()};

		n = count_same(calls, i);
		name_tree(&g.tree, rec, &calls->all.v[i], n, ++number);
		err = make_tree(&g, images, &calls->all.v[i], n);
		VEC_FINI(&g.open);
		VEC_FINI(&g.exact);
		VEC_FINI(&g.ran_in);
		VEC_FINI(&g.reasons);
		VEC_FINI(&g.at);
		code_map__free(g.map);
		if (err)
			call_tree__fini(&g.tree);
		else
			err = take(ctx, &g.tree);
	}
	return err;
}

int goroutines__trees(const struct recording *rec, struct images *images,
		      const struct thread_trees *threads, sampled_taker take, void *ctx,
		      struct sampled_totals *totals)
{
	struct goroutine_calls calls = {0};
	int err = collect(&calls, rec);

	if (!err)
		err = find_stops(&calls, rec, images);
	for (size_t i = 0; i < calls.all.n && !err; i++)
		if (!totals->first_ns || calls.all.v[i]->start_ns < totals->first_ns)
			totals->first_ns = calls.all.v[i]->start_ns;
	if (!err)
		err = make_trees(&calls, rec, images, threads, take, ctx);
	VEC_FINI(&calls.all);
	VEC_FINI(&calls.ready);
	VEC_FINI(&calls.stacks);
	VEC_FINI(&calls.stops);
	VEC_FINI(&calls.shown.all);
	return err;
}
