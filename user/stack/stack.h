/* SPDX-License-Identifier: MIT */
/* Turns branches of one thread into call trees: its own, and one per coroutine. */
#ifndef MTBPF_STACK_STACK_H
#define MTBPF_STACK_STACK_H

#include <sys/types.h>

#include "decode/branch.h"
#include "stack/call_tree.h"
#include "target/code_map.h"
#include "target/unwind/ocaml_handlers.h"

struct stack;

/* `map` must show, at each branch, the code as it was then. NULL: out of memory. */
struct stack *stack__new(pid_t pid, pid_t tid, const char *comm, struct code_map *map);
void stack__free(struct stack *stack);

/* Sets exception handlers of code for which no ELF file lists them. They must outlive the stack. */
void stack__set_traps(struct stack *stack, const struct ocaml_traps *traps);

/*
 * Sets who takes calls of the thread's own stack before stack__finish(), until the thread first
 * switches stacks. The consumer stays the caller's.
 */
void stack__set_consumer(struct stack *stack, const struct call_consumer *consumer);

/*
 * Takes the next branches, and the notes among them; other entries are skipped. The map is the same
 * at all of them. 0 or -ENOMEM.
 */
int stack__take(struct stack *stack, const struct branch *v, size_t n);
/*
 * The thread's stack at a trigger: ips[0] is where it ran, then return addresses, the innermost
 * first (copied). Call this before stack__take(), in the order of time. 0 or -ENOMEM.
 */
int stack__anchor(struct stack *stack, uint64_t time_ns, const uint64_t *ips, size_t n);

/*
 * Ends every open call and fills the tree, which call_tree__fini() frees, with those on the
 * thread's own stack. The stack takes no branches after it. 0 or -ENOMEM.
 */
int stack__finish(struct stack *stack, struct call_tree *tree);
/* After that, gets the trees of other stacks one by one. 1: `tree` is one; 0: no more; -ENOMEM. */
int stack__finish_next(struct stack *stack, struct call_tree *tree);
void call_tree__fini(struct call_tree *tree);

#endif
