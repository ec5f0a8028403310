// SPDX-License-Identifier: MIT
#include "view/blame.h"

#include <string.h>

/* Goroutines also need the same function. */
static bool is_of_name(const struct done_by *a, const struct done_by *b)
{
	const char *in = a->in ? a->in : "", *other = b->in ? b->in : "";

	return !strcmp(a->comm, b->comm) && !strcmp(in, other);
}

static void add_one(struct blame *blame, const struct done_by *by)
{
	for (size_t i = 0; i < BLAME_MAX; i++) {
		const struct done_by *known = blame->names[i].by;

		if (known && !is_of_name(known, by))
			continue;
		blame->names[i].by = known ? known : by;
		blame->names[i].ns += by->ns;
		return;
	}
}

static bool is_same_wait(const struct waits_for *a, const struct waits_for *b)
{
	char text[WAITS_FOR_SIZE], other[WAITS_FOR_SIZE];

	return !strcmp(waits_for__format(a, text), waits_for__format(b, other));
}

static void add_wait(struct blame *blame, const struct call_tree *tree, const struct call *call)
{
	const struct waits_for *wait = call_tree__waits_for(tree, call);

	for (struct waited *w = blame->waits; wait && w < blame->waits + BLAME_MAX; w++) {
		if (w->for_ && !is_same_wait(w->for_, wait))
			continue;
		w->for_ = w->for_ ? w->for_ : wait;
		w->ns += call->end_ns - call->start_ns;
		return;
	}
}

/* The longest of those that come after `last`; NULL: there is none. */
static const struct waited *next_wait(const struct blame *blame, const struct waited *last)
{
	const struct waited *found = NULL;

	for (const struct waited *w = blame->waits; w < blame->waits + BLAME_MAX; w++) {
		bool is_behind = !last || w->ns < last->ns || (w->ns == last->ns && w > last);

		if (w->for_ && is_behind && (!found || w->ns > found->ns))
			found = w;
	}
	return found;
}

const struct waits_for *blame__wait(const struct blame *blame)
{
	const struct waited *most = next_wait(blame, NULL);

	return most && most->ns >= blame->ns / BLAME_SHARE ? most->for_ : NULL;
}

void blame__print_wait(FILE *out, const struct blame *blame, const struct function *inside)
{
	const struct waited *most = next_wait(blame, NULL), *w = most;
	const struct waits_for *first = blame__wait(blame);
	char text[WAITS_FOR_SIZE];

	if (!first || (inside && !strcmp(waits_for__format(first, text), inside->name)))
		return;
	for (int i = 0; i < BLAME_SHOWN && w && w->ns >= most->ns / BLAME_SHARE; i++) {
		fprintf(out, "%s%s", i ? " and " : ": ", waits_for__format(w->for_, text));
		w = next_wait(blame, w);
	}
}

void blame__add(struct blame *blame, const struct call_tree *tree, const struct call *call)
{
	const struct done_by *by =
		call->kind == CALL_OFF_CPU ? call_tree__done_by(tree, call) : NULL;
	const struct done_by *end = by ? tree->done_by.v + tree->done_by.n : NULL;
	uint32_t index = (uint32_t)(call - tree->calls.v);

	blame->ns += call->end_ns - call->start_ns;
	if (call->kind == CALL_OFF_CPU || call->kind == CALL_SYSCALL)
		add_wait(blame, tree, call);
	if (by)
		blame->woken = call->reason == OFF_BLOCKED;
	for (; by && by < end && by->call == index; by++)
		add_one(blame, by);
}

/* The largest of those that come after `last`; NULL: there is none. */
static const struct blamed *next(const struct blame *blame, const struct blamed *last)
{
	const struct blamed *found = NULL;

	for (const struct blamed *b = blame->names; b < blame->names + BLAME_MAX; b++) {
		bool is_behind = !last || b->ns < last->ns || (b->ns == last->ns && b > last);

		if (b->by && is_behind && (!found || b->ns > found->ns))
			found = b;
	}
	return found;
}

const struct done_by *blame__most(const struct blame *blame)
{
	const struct blamed *most = next(blame, NULL);

	return most && most->ns >= blame->ns / BLAME_SHARE ? most->by : NULL;
}

static void print_name(FILE *out, const struct done_by *by)
{
	if (!by->is_goroutine)
		fprintf(out, "%s (%d)", by->comm, by->tid);
	else
		fprintf(out, "%s%s%s", by->comm, by->in ? " in " : "", by->in ? by->in : "");
}

static const char *deed(const struct blame *blame, const struct done_by *by)
{
	if (!blame->woken)
		return "by ";
	return by->is_goroutine ? "made ready by " : "woken by ";
}

void blame__print(FILE *out, const struct blame *blame)
{
	const struct blamed *most = next(blame, NULL), *b = most;

	if (most && most->ns < blame->ns / BLAME_SHARE)
		return;
	for (int i = 0; i < BLAME_SHOWN && b && b->ns >= most->ns / BLAME_SHARE; i++) {
		fprintf(out, ", %s", i ? "" : deed(blame, b->by));
		print_name(out, b->by);
		b = next(blame, b);
	}
}
