// SPDX-License-Identifier: MIT
#include "view/meanwhile.h"

#include <stdlib.h>
#include <string.h>

#include "util/names.h"
#include "util/text.h"
#include "util/units.h"
#include "util/vec.h"

/* A wait of the slow iteration that the other thread ended. */
struct wait {
	uint64_t start_ns, end_ns;
	uint64_t before_ns; /* length of the waits before it */
};

/* Kinds of what a thread does; the order of `words` in print(). */
enum doing { DOING_CPU, DOING_BLOCKED, DOING_WAITING, DOING_THROTTLED, DOING_STOLEN, DOINGS };

struct meanwhile {
	const struct report *r;
	const struct call_tree *tree; /* of the other thread */
	VEC(struct wait) waits;	      /* ascending, without overlaps */
	uint64_t all_ns;	      /* length of the waits */
	uint64_t ns[DOINGS];	      /* what the other thread did in them; the rest is not known */
};

static const struct call_tree *find_thread(const struct report *r, const struct done_by *by)
{
	for (size_t i = 0; i < r->n_trees; i++)
		if (r->trees[i].tid == by->tid && !r->trees[i].coroutine && r->trees[i].calls.n)
			return &r->trees[i];
	return NULL;
}

/* The function that the thread was in when it left the CPU; NULL: not known. */
static const struct function *function_of(const struct call_tree *tree, const struct call *call)
{
	while (call && (!call->function || call->kind == CALL_IN_KERNEL))
		call = call->parent == CALL_NO_PARENT ? NULL : &tree->calls.v[call->parent];
	return call ? call->function : NULL;
}

static int find_waits(struct meanwhile *m, const struct function *inside, pid_t waker)
{
	const struct period *slow = report__slow(m->r);
	int err = 0;

	VEC_EACH(&m->r->tree->calls, call) {
		const struct done_by *by;

		if (call->kind != CALL_OFF_CPU || call->reason != OFF_BLOCKED ||
		    call->start_ns < slow->start_ns || call->end_ns > slow->end_ns)
			continue;
		by = call_tree__done_by(m->r->tree, call);
		if (!by || by->is_goroutine || by->tid != waker ||
		    function_of(m->r->tree, call) != inside)
			continue;
		err = err
			      ?: VEC_ADD(&m->waits,
					 (struct wait){call->start_ns, call->end_ns, m->all_ns});
		m->all_ns += call->end_ns - call->start_ns;
	}
	return err;
}

/* The length of the waits before time_ns. */
static uint64_t waited_until(const struct meanwhile *m, uint64_t time_ns)
{
	size_t i = VEC_PARTITION_POINT(&m->waits, wait, wait->end_ns <= time_ns);
	const struct wait *wait = &m->waits.v[i];

	if (i == m->waits.n)
		return m->all_ns;
	return wait->before_ns + (time_ns > wait->start_ns ? time_ns - wait->start_ns : 0);
}

/* The part of the call that is in the waits. */
static uint64_t overlap(const struct meanwhile *m, const struct call *call)
{
	return waited_until(m, call->end_ns) - waited_until(m, call->start_ns);
}

/* DOINGS: not known. */
static enum doing doing_of(const struct report *r, const struct call *call)
{
	static const enum doing doings[ACCOUNT_PARTS] = {
		[ACCOUNT_CPU] = DOING_CPU,	     [ACCOUNT_INTERRUPTS] = DOINGS,
		[ACCOUNT_RECLAIM_CPU] = DOINGS,	     [ACCOUNT_RECLAIM_BLOCKED] = DOINGS,
		[ACCOUNT_BLOCKED] = DOING_BLOCKED,   [ACCOUNT_RUNNABLE] = DOING_WAITING,
		[ACCOUNT_PREEMPTED] = DOING_WAITING, [ACCOUNT_THROTTLED] = DOING_THROTTLED,
		[ACCOUNT_STOLEN] = DOING_STOLEN,     [ACCOUNT_SYSCALL] = DOINGS,
		[ACCOUNT_UNKNOWN] = DOINGS,
	};

	return doings[report__part_of(r, call)];
}

/* Adds a call's time in the waits to what it is, and takes it from its caller's. */
static void add_call(struct meanwhile *m, const struct call *call)
{
	const struct call *caller =
		call->parent == CALL_NO_PARENT ? NULL : &m->tree->calls.v[call->parent];
	uint64_t ns = overlap(m, call);
	enum doing doing = doing_of(m->r, call);

	if (doing < DOINGS)
		m->ns[doing] += ns;
	doing = caller ? doing_of(m->r, caller) : DOINGS;
	if (doing < DOINGS)
		m->ns[doing] -= ns;
}

/* The innermost single call of a function that took most of the waits; NULL: none. */
static const struct function *find_function(const struct meanwhile *m)
{
	const struct call *found = NULL;

	VEC_EACH(&m->tree->calls, call)
		if (call->function && call->kind != CALL_IN_KERNEL &&
		    overlap(m, call) > m->all_ns / 4 * 3 && (!found || call->depth > found->depth))
			found = call;
	return found ? found->function : NULL;
}

/* Sums up the other thread's waits of this kind; returns the function of the longest, or NULL. */
static const struct function *sum_off_cpu(const struct meanwhile *m, enum doing doing,
					  struct off_cpu *off_cpu)
{
	const struct call *longest = NULL;
	uint64_t most_ns = 0;

	VEC_EACH(&m->tree->calls, call) {
		uint64_t ns = call->kind == CALL_OFF_CPU && doing_of(m->r, call) == doing
				      ? overlap(m, call)
				      : 0;

		if (!ns)
			continue;
		off_cpu__add(off_cpu, m->tree, call, ns);
		if (ns <= most_ns)
			continue;
		most_ns = ns;
		longest = call;
	}
	return function_of(m->tree, longest);
}

static void print(FILE *out, const struct meanwhile *m, const struct done_by *by, enum doing doing)
{
	static const char *const words[DOINGS] = {
		[DOING_CPU] = "on the CPU",
		[DOING_BLOCKED] = "blocked",
		[DOING_WAITING] = "ready to run, but its CPU was taken",
		[DOING_THROTTLED] = "throttled",
		[DOING_STOLEN] = "ready to run, but the hypervisor did not run its CPU",
	};
	struct off_cpu off_cpu = {0};
	const struct function *function =
		doing == DOING_CPU ? find_function(m) : sum_off_cpu(m, doing, &off_cpu);

	fprintf(out, "%s (%d) was %s", by->comm, (int)by->tid, words[doing]);
	if (function && doing == DOING_CPU)
		fprintf(out, ", in %s", SHORT_NAME(function->name));
	if (function && doing == DOING_BLOCKED)
		fprintf(out, " in %s", SHORT_NAME(function->name));
	if (doing == DOING_BLOCKED)
		off_cpu__print_wait(out, &off_cpu, function);
	if (doing == DOING_BLOCKED || doing == DOING_WAITING)
		off_cpu__print(out, &off_cpu);
	fprintf(out, "; %s of %s", DURATION(m->ns[doing]), DURATION(m->all_ns));
}

char *meanwhile__format(const struct report *r, const struct row *row)
{
	const struct done_by *by = off_cpu__most(&row->off_cpu);
	struct meanwhile m = {.r = r};
	enum doing most = DOING_CPU;
	char *text = NULL;

	m.tree = by && !by->is_goroutine ? find_thread(r, by) : NULL;
	if (!m.tree || m.tree == r->tree)
		return NULL;
	if (!find_waits(&m, row->inside, by->tid)) {
		VEC_EACH(&m.tree->calls, call)
			add_call(&m, call);
		for (enum doing i = DOING_CPU; i < DOINGS; i++)
			if (m.ns[i] > m.ns[most])
				most = i;
		/* Threads with the same name may have ended the other waits. */
		if (m.ns[most] && m.ns[most] >= m.all_ns / 2 &&
		    m.all_ns >= row->off_cpu.ns / OFF_CPU_SHARE)
			text = TEXT_OF(out, print(out, &m, by, most));
	}
	VEC_FINI(&m.waits);
	return text;
}
