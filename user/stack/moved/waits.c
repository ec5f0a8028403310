// SPDX-License-Identifier: MIT
#include "stack/moved/waits.h"

#include <errno.h>
#include <string.h>

#include "decode/branch.h"

static bool is_wait(const struct call *call)
{
	return call->kind == CALL_SWITCHED && call->parent != CALL_NO_PARENT;
}

int waiter__init(struct waiter *waiter, struct call_tree *tree)
{
	*waiter = (struct waiter){.tree = tree};
	for (uint32_t i = 0; i < tree->calls.n; i++) {
		uint32_t *wait = is_wait(&tree->calls.v[i]) ? VEC_PUSH(&waiter->waits) : NULL;

		if (wait)
			*wait = i;
		else if (is_wait(&tree->calls.v[i]))
			return -ENOMEM;
	}
	return 0;
}

void waiter__fini(struct waiter *waiter)
{
	VEC_FINI(&waiter->waits);
}

uint32_t waiter__find(const struct waiter *waiter, uint64_t time_ns)
{
	const struct call *calls = waiter->tree->calls.v, *call;
	size_t n = VEC_PARTITION_POINT(&waiter->waits, e, calls[*e].start_ns <= time_ns);

	if (!n)
		return CALL_NO_PARENT;
	call = &calls[waiter->waits.v[n - 1]];
	return call->end_ns > time_ns || call->flags & CALL_INFERRED_END ? waiter->waits.v[n - 1]
									 : CALL_NO_PARENT;
}

static bool was_running(const struct call *call)
{
	return call->kind == CALL_FUNCTION && call->function && call->flags & CALL_INFERRED_START;
}

bool newcomer__init(struct newcomer *newcomer, struct call_tree *tree)
{
	const struct call *calls = tree->calls.v;
	uint32_t n = (uint32_t)tree->calls.n, top = 0, end = 1;

	if (!tree->strand || !n || !was_running(&calls[0]))
		return false;
	while (top + 1 < n && calls[top + 1].parent == top && was_running(&calls[top + 1]) &&
	       calls[top + 1].start_ns == calls[0].start_ns)
		top++;
	/* Its first function, which a late root may lie below. */
	if (top + 1 < n && calls[top + 1].parent == top && !calls[top + 1].call_ip &&
	    calls[top + 1].start_ns == calls[0].start_ns)
		return false;
	while (end < n && calls[end].depth)
		end++;
	*newcomer = (struct newcomer){tree, top, end};
	return true;
}

/* Where its return goes, if its caller, below it, was seen first when it did. */
static bool returns_to(const struct call_tree *tree, const struct call *call, uint64_t ip)
{
	/* A call that a handler has put in where it had interrupted. */
	if (call->kind == CALL_SIGNAL)
		return call->call_ip == ip;
	if (call->call_ip)
		return ip - call->call_ip - CALL_MIN_LEN <= CALL_MAX_LEN - CALL_MIN_LEN;
	return call->parent != CALL_NO_PARENT && tree->calls.v[call->parent].entry_ip == ip;
}

bool call__is_goexit(const struct call *call)
{
	const char *name = call->function ? call->function->raw_name : "";

	return !strcmp(name, "runtime.goexit") || !strcmp(name, "runtime.goexit.abi0");
}

bool newcomer__is(const struct newcomer *newcomer, const struct call_tree *tree, uint32_t wait,
		  struct match *match)
{
	const struct call *own = newcomer->tree->calls.v, *calls = tree->calls.v;
	uint32_t above = calls[wait].parent;

	*match = (struct match){.lowest = above};
	for (uint32_t left = newcomer->top + 1; left; left--) {
		const struct call *mine = &own[left - 1], *callee = &calls[above];

		if (callee->parent == CALL_NO_PARENT) {
			match->n_below = left;
			return left <= newcomer->top && (callee->flags & CALL_INFERRED_START ||
							 (left == 1 && call__is_goexit(&own[0])));
		}
		above = callee->parent;
		if (calls[above].function != mine->function || calls[above].kind > CALL_SIGNAL)
			return false;
		/* Of a tail call nobody knows where what it has replaced was to return. */
		if (returns_to(tree, callee, mine->entry_ip))
			match->n_agreed += left <= newcomer->top;
		else if (!(callee->flags & CALL_BY_JUMP))
			return false;
		match->lowest = above;
	}
	return true;
}
