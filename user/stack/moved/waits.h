/* SPDX-License-Identifier: MIT */
/* When the stacks that trees are of were switched out, and what would go on there. */
#ifndef MTBPF_STACK_MOVED_WAITS_H
#define MTBPF_STACK_MOVED_WAITS_H

#include <stdbool.h>

#include "stack/call_tree.h"

/* A tree, and its slices of times switched out, ascending, that lie on what had switched. */
struct waiter {
	struct call_tree *tree;
	VEC(uint32_t) waits;
};

/* 0 or -ENOMEM. */
int waiter__init(struct waiter *waiter, struct call_tree *tree);
void waiter__fini(struct waiter *waiter);

/* The slice of the one that waits at that time, or CALL_NO_PARENT. */
uint32_t waiter__find(const struct waiter *waiter, uint64_t time_ns);

/*
 * What a tree begins with, if that is a stack that was there before: calls 0 to `top` had called
 * one another when the thread went on in the last of them. Those up to `end` are on that stack.
 */
struct newcomer {
	struct call_tree *tree;
	uint32_t top, end;
};

/* False: the tree does not begin so. */
bool newcomer__init(struct newcomer *newcomer, struct call_tree *tree);

/* What every goroutine returns to: nobody has called it, and it is seen at the end only. */
bool call__is_goexit(const struct call *call);

/* How what waits is the newcomer. */
struct match {
	uint32_t lowest;  /* the call that newcomer's first is, or, of n_below, the outermost */
	uint32_t n_below; /* so many of the newcomer's first calls are below all that waits shows */
	uint32_t n_agreed; /* return addresses */
};

/* False: it is another one. */
bool newcomer__is(const struct newcomer *newcomer, const struct call_tree *tree, uint32_t wait,
		  struct match *match);

#endif
