// SPDX-License-Identifier: MIT
#include "view/off_cpu.h"

#include <string.h>

/*
 * Returns the sum that follows `last` if they are sorted by falling time; last NULL: the largest
 * one. NULL: no more.
 */
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

/*
 * Without room, a name takes the place of the one with the least time, or lowers that time: the
 * sums of names with little time are too low.
 */
static void add_name(struct off_cpu_sum names[static OFF_CPU_MAX], const struct done_by *by,
		     uint64_t ns)
{
	struct off_cpu_sum *least = names;

	for (struct off_cpu_sum *known = names; known < names + OFF_CPU_MAX; known++) {
		/* Goroutines also need the same function. */
		if (!known->by || (!strcmp(known->by->comm, by->comm) &&
				   !strcmp(known->by->in ?: "", by->in ?: ""))) {
			if (!known->by || by->ns > known->by->ns)
				known->by = by;
			known->ns += ns;
			return;
		}
		if (known->ns < least->ns)
			least = known;
	}
	if (least->ns < ns)
		*least = (struct off_cpu_sum){.by = by, .ns = ns};
	else
		least->ns -= ns;
}

void off_cpu__add(struct off_cpu *off_cpu, const struct call_tree *tree, const struct call *call,
		  uint64_t ns)
{
	const struct waits_for *wait = call->kind == CALL_OFF_CPU || call->kind == CALL_SYSCALL
					       ? call_tree__waits_for(tree, call)
					       : NULL;
	const struct done_by *by =
		call->kind == CALL_OFF_CPU ? call_tree__done_by(tree, call) : NULL;
	const struct done_by *end = by ? tree->done_by.v + tree->done_by.n : NULL;
	char text[WAITS_FOR_SIZE], other[WAITS_FOR_SIZE];
	uint32_t index = (uint32_t)(call - tree->calls.v);
	uint64_t all_ns = call->end_ns - call->start_ns;

	off_cpu->ns += ns;
	for (size_t i = 0; i < OFF_CPU_MAX && wait; i++) {
		struct off_cpu_sum *w = &off_cpu->waits[i];

		if (w->wait &&
		    strcmp(waits_for__format(w->wait, text), waits_for__format(wait, other)))
			continue;
		w->wait = w->wait ?: wait;
		w->ns += ns;
		break;
	}
	if (by)
		off_cpu->woken = call->reason == OFF_BLOCKED;
	/* It is not known when in the call each thread caused it: each takes its share. */
	for (; by && by < end && by->call == index; by++)
		add_name(off_cpu->names, by,
			 ns < all_ns ? (uint64_t)((double)by->ns * (double)ns / (double)all_ns)
				     : by->ns);
}

const struct done_by *off_cpu__most(const struct off_cpu *off_cpu)
{
	const struct off_cpu_sum *most = next(off_cpu->names, NULL);

	return most && most->ns >= off_cpu->ns / OFF_CPU_SHARE ? most->by : NULL;
}

void off_cpu__print(FILE *out, const struct off_cpu *off_cpu)
{
	const struct off_cpu_sum *most = next(off_cpu->names, NULL), *b = most;

	if (most && most->ns < off_cpu->ns / OFF_CPU_SHARE)
		return;
	for (int i = 0; i < OFF_CPU_SHOWN && b && b->ns >= most->ns / OFF_CPU_SHARE; i++) {
		const struct done_by *by = b->by;
		const char *relation = !off_cpu->woken	  ? "by "
				       : by->is_goroutine ? "made ready by "
							  : "woken by ";

		fprintf(out, ", %s%s", i ? "" : relation, by->comm);
		if (!by->is_goroutine)
			fprintf(out, " (%d)", by->tid);
		else if (by->in)
			fprintf(out, " in %s", by->in);
		b = next(off_cpu->names, b);
	}
}
