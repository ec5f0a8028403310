// SPDX-License-Identifier: MIT
#include "view/off_cpu.h"

#include <string.h>

/* Goroutines also need the same function. */
static bool is_of_name(const struct done_by *a, const struct done_by *b)
{
	const char *in = a->in ? a->in : "", *other = b->in ? b->in : "";

	return !strcmp(a->comm, b->comm) && !strcmp(in, other);
}

static void add_one(struct off_cpu *off_cpu, const struct done_by *by)
{
	for (size_t i = 0; i < OFF_CPU_MAX; i++) {
		const struct done_by *known = off_cpu->names[i].by;

		if (known && !is_of_name(known, by))
			continue;
		off_cpu->names[i].by = known ? known : by;
		off_cpu->names[i].ns += by->ns;
		return;
	}
}

static bool is_same_wait(const struct waits_for *a, const struct waits_for *b)
{
	char text[WAITS_FOR_SIZE], other[WAITS_FOR_SIZE];

	return !strcmp(waits_for__format(a, text), waits_for__format(b, other));
}

static void add_wait(struct off_cpu *off_cpu, const struct call_tree *tree, const struct call *call)
{
	const struct waits_for *wait = call_tree__waits_for(tree, call);

	for (struct off_cpu_sum *w = off_cpu->waits; wait && w < off_cpu->waits + OFF_CPU_MAX;
	     w++) {
		if (w->wait && !is_same_wait(w->wait, wait))
			continue;
		w->wait = w->wait ? w->wait : wait;
		w->ns += call->end_ns - call->start_ns;
		return;
	}
}

/* The next sum by falling time after `last` (NULL: the largest), or NULL. */
static const struct off_cpu_sum *next(const struct off_cpu_sum *sums,
				      const struct off_cpu_sum *last)
{
	const struct off_cpu_sum *found = NULL;

	for (const struct off_cpu_sum *s = sums; s < sums + OFF_CPU_MAX; s++) {
		bool is_behind = !last || s->ns < last->ns || (s->ns == last->ns && s > last);

		if ((s->wait || s->by) && is_behind && (!found || s->ns > found->ns))
			found = s;
	}
	return found;
}

const struct waits_for *off_cpu__wait(const struct off_cpu *off_cpu)
{
	const struct off_cpu_sum *most = next(off_cpu->waits, NULL);

	return most && most->ns >= off_cpu->ns / OFF_CPU_SHARE ? most->wait : NULL;
}

void off_cpu__print_wait(FILE *out, const struct off_cpu *off_cpu, const struct function *inside)
{
	const struct off_cpu_sum *most = next(off_cpu->waits, NULL), *w = most;
	const struct waits_for *first = off_cpu__wait(off_cpu);
	char text[WAITS_FOR_SIZE];

	if (!first || (inside && !strcmp(waits_for__format(first, text), inside->name)))
		return;
	for (int i = 0; i < OFF_CPU_SHOWN && w && w->ns >= most->ns / OFF_CPU_SHARE; i++) {
		fprintf(out, "%s%s", i ? " and " : ": ", waits_for__format(w->wait, text));
		w = next(off_cpu->waits, w);
	}
}

void off_cpu__add(struct off_cpu *off_cpu, const struct call_tree *tree, const struct call *call)
{
	const struct done_by *by =
		call->kind == CALL_OFF_CPU ? call_tree__done_by(tree, call) : NULL;
	const struct done_by *end = by ? tree->done_by.v + tree->done_by.n : NULL;
	uint32_t index = (uint32_t)(call - tree->calls.v);

	off_cpu->ns += call->end_ns - call->start_ns;
	if (call->kind == CALL_OFF_CPU || call->kind == CALL_SYSCALL)
		add_wait(off_cpu, tree, call);
	if (by)
		off_cpu->woken = call->reason == OFF_BLOCKED;
	for (; by && by < end && by->call == index; by++)
		add_one(off_cpu, by);
}

const struct done_by *off_cpu__most(const struct off_cpu *off_cpu)
{
	const struct off_cpu_sum *most = next(off_cpu->names, NULL);

	return most && most->ns >= off_cpu->ns / OFF_CPU_SHARE ? most->by : NULL;
}

static void print_name(FILE *out, const struct done_by *by)
{
	if (!by->is_goroutine)
		fprintf(out, "%s (%d)", by->comm, by->tid);
	else
		fprintf(out, "%s%s%s", by->comm, by->in ? " in " : "", by->in ? by->in : "");
}

static const char *relation(const struct off_cpu *off_cpu, const struct done_by *by)
{
	if (!off_cpu->woken)
		return "by ";
	return by->is_goroutine ? "made ready by " : "woken by ";
}

void off_cpu__print(FILE *out, const struct off_cpu *off_cpu)
{
	const struct off_cpu_sum *most = next(off_cpu->names, NULL), *b = most;

	if (most && most->ns < off_cpu->ns / OFF_CPU_SHARE)
		return;
	for (int i = 0; i < OFF_CPU_SHOWN && b && b->ns >= most->ns / OFF_CPU_SHARE; i++) {
		fprintf(out, ", %s", i ? "" : relation(off_cpu, b->by));
		print_name(out, b->by);
		b = next(off_cpu->names, b);
	}
}
