// SPDX-License-Identifier: MIT
/* Fills the time between a goroutine's exact calls with what the stacks of threads show. */
#include <errno.h>
#include <stdlib.h>

#include "sampled/goroutines.h"
#include "sampled/goroutines_internal.h"
#include "util/vec.h"

struct interval {
	uint64_t start_ns, end_ns;
};

static int emit_not_recorded(struct goroutine *g, uint64_t start_ns, uint64_t end_ns,
			     uint32_t depth)
{
	const struct call call = {.start_ns = start_ns,
				  .end_ns = end_ns,
				  .kind = CALL_NOT_RECORDED,
				  .flags = CALL_SAMPLED};

	return start_ns < end_ns ? goroutine__emit(g, &call, depth) : 0;
}

/*
 * Adds the time from start_ns to end_ns, in which no stack shows the goroutine: "stop-the-world"
 * while Go had stopped all goroutines, "not recorded" elsewhere. If the goroutine had left its
 * thread (left_ns; 0: it may still run), the stop counts from its request, otherwise from when
 * nothing ran any more.
 */
static int emit_unknown(struct goroutine *g, uint64_t start_ns, uint64_t end_ns, uint32_t depth,
			uint64_t left_ns)
{
	struct call stopped = {.kind = CALL_OFF_CPU, .reason = OFF_BLOCKED, .flags = CALL_SAMPLED};
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
		stopped.start_ns = from;
		stopped.end_ns = to;
		err = emit_not_recorded(g, start_ns, from, depth);
		if (!err)
			err = goroutine__emit(g, &stopped, depth);
		if (!err)
			err = goroutine__emit_wait(g, "stop-the-world");
		start_ns = to;
	}
	return err ? err : emit_not_recorded(g, start_ns, end_ns, depth);
}

/* Copies what the thread waited for in that call, and who caused it. */
static int copy_notes(struct goroutine *g, const struct call_tree *thread, const struct call *call)
{
	const struct waits_for *wait = call_tree__waits_for(thread, call);
	const struct done_by *by = call_tree__done_by(thread, call);
	const struct done_by *end = by ? thread->done_by.v + thread->done_by.n : NULL;
	uint32_t from = (uint32_t)(call - thread->calls.v), to = (uint32_t)(g->tree.calls.n - 1);
	int err = 0;

	if (wait) {
		struct waits_for copy = *wait;

		copy.call = to;
		err = VEC_ADD(&g->tree.waits, copy);
	}
	for (; by && by < end && by->call == from && !err; by++) {
		struct done_by copy = *by;

		copy.call = to;
		err = VEC_ADD(&g->tree.done_by, copy);
	}
	return err;
}

bool go_function__is(const struct function *function, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(function->name, name, n) &&
	       (!function->name[n] || function->name[n] == '.');
}

bool go_function__is_scheduler(const struct function *function)
{
	static const char *const names[] = {
		"runtime.mcall",	"runtime.park_m",	"runtime.schedule",
		"runtime.findRunnable", "runtime.findrunnable", "runtime.goexit0",
		"runtime.gosched_m",	"runtime.gopreempt_m",	"runtime.goschedImpl",
		"runtime.stopm",	"runtime.exitsyscall0", "runtime.netpoll",
		"runtime.epollwait",
	};

	return function && ARRAY_FIND(names, name, go_function__is(function, *name));
}

/*
 * True if the calls of this function are among the exact ones: a stack that shows it where no exact
 * call is open belongs to another goroutine.
 */
static bool is_measured(const struct goroutine *g, const struct call *call)
{
	size_t n = g->exact.n < 256 ? g->exact.n : 256;

	return call->function && FIND_IN(g->exact.v, n, e, e->function == call->function);
}

/* The latest time at which the goroutine can have gone to the scheduler, by samples. */
static uint64_t left_at(const struct goroutine *g, const struct call *scheduler)
{
	uint64_t ns = scheduler->flags & CALL_INFERRED_START ? g->rec->sample_period_ns : 0;

	return scheduler->start_ns + ns < scheduler->end_ns ? scheduler->start_ns + ns
							    : scheduler->end_ns;
}

/* Copies the callees of the thread's calls[i], within [start, end). */
static int copy_callees(struct goroutine *g, const struct call_tree *thread, size_t i,
			uint64_t start_ns, uint64_t end_ns, uint32_t depth)
{
	uint32_t base = thread->calls.v[i].depth + 1, left = UINT32_MAX;
	int err = 0;

	for (i++; i < thread->calls.n && thread->calls.v[i].depth >= base && !err; i++) {
		struct call call = thread->calls.v[i];
		bool in_scheduler = go_function__is_scheduler(call.function);
		uint64_t left_ns = in_scheduler ? left_at(g, &call) : 0;

		/* Nothing that the scheduler calls is part of the goroutine. */
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
		err = goroutine__emit(g, &call, depth + call.depth - base);
		if (!err)
			err = copy_notes(g, thread, &thread->calls.v[i]);
	}
	return err;
}

/* Copies interrupts of the thread: they take time from the goroutine that it runs. */
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
 * A goroutine that is preempted in a function's prologue enters the scheduler through morestack(),
 * where frame pointers end since Go 1.21. The scheduler's slice is then outside of the goroutine's
 * calls: it begins when the thread's calls[i] ends. NULL: not found.
 */
static const struct call *find_scheduler_after(const struct call_tree *thread, size_t i)
{
	const struct call *calls = thread->calls.v;
	uint64_t end_ns = calls[i].end_ns;

	for (i++; i < thread->calls.n && calls[i].parent != CALL_NO_PARENT; i++)
		;
	if (i == thread->calls.n || !calls[i].function ||
	    !go_function__is(calls[i].function, "runtime.morestack"))
		return NULL;
	for (; i < thread->calls.n && calls[i].start_ns == end_ns; i++)
		if (go_function__is_scheduler(calls[i].function))
			return &calls[i];
	return NULL;
}

/* The scheduler's first slice in or right after the thread's calls[i], if it begins before the end.
 */
static const struct call *find_scheduler(const struct call_tree *thread, size_t i, uint64_t end_ns)
{
	const struct call *call = &thread->calls.v[i], *end = thread->calls.v + thread->calls.n;

	for (const struct call *in = call + 1;
	     in < end && in->depth > call->depth && in->start_ns < end_ns; in++)
		if (go_function__is_scheduler(in->function))
			return in;
	return call->end_ns < end_ns ? find_scheduler_after(thread, i) : NULL;
}

/* A part of an exact call, which is at depth - 1, that is to be filled with slices. */
struct stretch {
	const struct function *function;
	uint64_t entry_ip;
	uint64_t start_ns, end_ns;
	uint32_t depth;
	uint64_t left_ns; /* when the goroutine had left its thread; 0: it may still run */
};

/*
 * Adds what the stacks of one thread show of the stretch, and moves its start past that. If they do
 * not show the call, the thread ran something else. moves: the call ended in another thread, so
 * only what the first thread shows from the start of the stretch is taken.
 */
static int fill_from(struct goroutine *g, struct stretch *s, pid_t tid, bool moves)
{
	const struct call_tree *thread =
		VEC_FIND(g->threads, t, t->tid == tid && t->pid == g->tree.pid);
	size_t n = 0;
	int err = 0;

	if (thread)
		n = VEC_PARTITION_POINT(&thread->calls, c, c->start_ns < s->end_ns);
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

ORDER(compare_shown, struct shown, COMPARE(x->start_ns, y->start_ns))

ORDER(compare_intervals, struct interval, COMPARE(x->start_ns, y->start_ns))

typedef VEC(struct interval) interval_vec;

/* Finds, without overlaps, the times in which any goroutine had a call open of entry_ip's function.
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

/*
 * Finds the threads' calls of the function. Sets has_others if some are not in the log: they began
 * before the probe was set, or their entries have been overwritten.
 */
static int find_shown(struct goroutine *g, const struct function *function, uint64_t entry_ip)
{
	struct goroutine_calls *calls = g->calls;
	interval_vec open = {0};
	int err;

	if (calls->shown.function == function && calls->shown.tgid == (uint32_t)g->tree.pid)
		return 0;
	calls->shown.function = function;
	calls->shown.tgid = (uint32_t)g->tree.pid;
	calls->shown.all.n = 0;
	VEC_EACH(g->threads, thread) {
		for (size_t i = 0; thread->pid == g->tree.pid && i < thread->calls.n; i++) {
			const struct call *call = &thread->calls.v[i];

			if (call->function == function && call->kind == CALL_FUNCTION &&
			    VEC_ADD(&calls->shown.all, (struct shown){thread, i, call->start_ns}))
				return -ENOMEM;
		}
	}
	VEC_SORT(&calls->shown.all, compare_shown);
	err = find_open(g, entry_ip, &open);
	calls->shown.has_others = calls->all.n >= MT_ENTRY_LOG;
	VEC_EACH_WHILE(&calls->shown.all, shown, !err)
		if (time_outside(&open, &shown->thread->calls.v[shown->index]) >
		    EDGE_PERIODS * g->rec->sample_period_ns)
			calls->shown.has_others = true;
	VEC_FINI(&open);
	return err;
}

/*
 * True if other goroutines of the process did not execute the function during the stretch: any
 * thread that shows the function then runs this goroutine.
 */
static bool is_only_one(const struct goroutine *g, const struct stretch *s)
{
	return !g->calls->shown.has_others &&
	       !VEC_FIND(&g->calls->all, e,
			 (*e)->tgid == (uint32_t)g->tree.pid && (*e)->goroutine != g->number &&
				 (*e)->ip == s->entry_ip && (*e)->start_ns < s->end_ns &&
				 (!(*e)->end_ns || (*e)->end_ns > s->start_ns));
}

/* A part of a thread's call; `scheduler` is the slice that ends it, or NULL. */
struct part {
	const struct shown *shown;
	uint64_t start_ns, end_ns;
	const struct call *scheduler;
};

/* Finds the first part after since_ns in which the scheduler does not run; false without one. */
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
		if (!go_function__is_scheduler(in->function) || in->end_ns <= part->start_ns)
			continue;
		if (in->start_ns > part->start_ns)
			part->scheduler = in;
		else
			part->start_ns = in->end_ns;
	}
	if (!part->scheduler)
		part->scheduler = find_scheduler_after(shown->thread, shown->index);
	if (part->scheduler)
		part->end_ns = part->scheduler->start_ns;
	return part->start_ns < part->end_ns;
}

/* Finds the first part of the stretch that any thread shows; false without one. */
static bool find_next(const struct goroutine *g, const struct stretch *s, struct part *found)
{
	struct part part;

	*found = (struct part){.start_ns = s->end_ns};
	VEC_EACH(&g->calls->shown.all, shown) {
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

/* When the goroutine went to the scheduler: by the first such slice in [start, end); 0: none. */
static uint64_t find_left(const struct goroutine *g, uint64_t start_ns, uint64_t end_ns)
{
	VEC_EACH(&g->calls->shown.all, shown) {
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

int goroutine__fill_gap(struct goroutine *g, uint32_t call, struct ran_in ran_in, uint64_t start_ns,
			uint64_t end_ns)
{
	const struct call *in = &g->exact.v[call];
	struct stretch s = {.function = in->function,
			    .entry_ip = in->entry_ip,
			    .start_ns = start_ns,
			    .end_ns = end_ns,
			    .depth = in->depth + 1};
	/* Shorter calls hardly ever change threads: a search through all threads does not pay. */
	bool is_long = end_ns - start_ns > g->rec->sample_period_ns;
	int err = 0;

	/* While a goroutine is parked it runs nothing. */
	if (start_ns >= end_ns || is_park(in))
		return 0;
	if (is_long)
		err = find_shown(g, s.function, s.entry_ip);
	if (!err && is_long && is_only_one(g, &s))
		return fill_from_all(g, &s);
	if (!err && ran_in.first != ran_in.last)
		err = fill_from(g, &s, ran_in.first, true);
	if (!err)
		err = fill_from(g, &s, ran_in.last, false);
	return err ? err : emit_unknown(g, s.start_ns, s.end_ns, s.depth, s.left_ns);
}
