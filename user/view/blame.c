// SPDX-License-Identifier: MIT
#include "view/blame.h"

#include <string.h>

static void add_one(struct blame *blame, const struct done_by *by)
{
	for (size_t i = 0; i < BLAME_MAX; i++) {
		const struct done_by *known = blame->names[i].by;

		if (known && strcmp(known->comm, by->comm))
			continue;
		blame->names[i].by = known ? known : by;
		blame->names[i].ns += by->ns;
		return;
	}
}

static void add_wait(struct blame *blame, const struct call_tree *tree, const struct call *call)
{
	const struct waits_for *wait = call_tree__waits_for(tree, call);
	uint64_t ns = call->end_ns - call->start_ns;

	if (!wait || ns < blame->wait_ns)
		return;
	blame->wait = wait;
	blame->wait_ns = ns;
}

void blame__print_wait(FILE *out, const struct blame *blame, const struct function *inside)
{
	char text[WAITS_FOR_SIZE];

	if (!blame->wait)
		return;
	waits_for__format(blame->wait, text);
	if (!inside || strcmp(text, inside->name))
		fprintf(out, ": %s", text);
}

void blame__add(struct blame *blame, const struct call_tree *tree, const struct call *call)
{
	const struct done_by *by =
		call->kind == CALL_OFF_CPU ? call_tree__done_by(tree, call) : NULL;
	const struct done_by *end = by ? tree->done_by.v + tree->done_by.n : NULL;
	uint32_t index = (uint32_t)(call - tree->calls.v);

	if (call->kind == CALL_OFF_CPU || call->kind == CALL_SYSCALL)
		add_wait(blame, tree, call);
	if (by)
		blame->woken = call->reason == OFF_BLOCKED;
	for (; by && by < end && by->call == index; by++)
		add_one(blame, by);
}

/* The one with the most of those that come behind `last`; NULL: there is none. */
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

void blame__print(FILE *out, const struct blame *blame)
{
	const struct blamed *most = next(blame, NULL), *b = most;

	for (int i = 0; i < BLAME_SHOWN && b && b->ns >= most->ns / BLAME_SHARE; i++) {
		fprintf(out, ", %s%s (%d)",
			i	       ? ""
			: blame->woken ? "woken by "
				       : "by ",
			b->by->comm, b->by->tid);
		b = next(blame, b);
	}
}
