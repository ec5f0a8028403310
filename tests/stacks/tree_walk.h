/* SPDX-License-Identifier: MIT */
/* What runs at a time, of a thread's finished trees. */
#ifndef MTBPF_TESTS_STACKS_TREE_WALK_H
#define MTBPF_TESTS_STACKS_TREE_WALK_H

#include <stdbool.h>

#include "stack/stack.h"
#include "util/vec.h"

/* The part of a tree that runs at a time: walks on only. */
struct walk {
	struct call_tree tree;
	size_t next;
	VEC(const struct call *) path;
	VEC(const struct function *) frames; /* the path without what is no function, or goexit() */
};
typedef VEC(struct walk) walk_vec;

/* A walk of each tree that the stack makes. 0, or non-zero where memory ran out. */
int walks__init(walk_vec *walks, struct stack *stack);
void walks__fini(walk_vec *walks);

/* The one whose stack runs at that time, which is later than the last. */
const struct walk *walks__find_running(walk_vec *walks, uint64_t now);
/*
 * What every goroutine returns to at its end: nobody has called it, and it shows only where one
 * does.
 */
bool walk__is_goexit(const struct function *function);
/* To the first time. */
void walks__rewind(walk_vec *walks);

#endif
