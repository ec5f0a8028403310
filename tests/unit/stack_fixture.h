/* SPDX-License-Identifier: MIT */
/* A thread in code of a few functions, driven branch by branch; each takes 10 ns. */
#ifndef MTBPF_TESTS_STACK_FIXTURE_H
#define MTBPF_TESTS_STACK_FIXTURE_H

#include "../rules_tried.h"
#include "../stack_state.h"
#include "tree_text.h"

#include <stdbool.h>
#include <string.h>

#include "stack/rules.h"
#include "stack/stack.h"

/* Where the functions lie; each is FUNCTION_SIZE long. */
enum {
	MAIN = 0x1000,
	A = 0x2000,
	B = 0x3000,
	C = 0x4000,
	HANDLER = 0x5000,
	HANDLER_2 = 0x6000,
	RESTORER = 0x7000,
	NOWHERE = 0x9000,
};
#define FUNCTION_SIZE  0x100
#define FUNCTION_COUNT 7
#define MORE_FUNCTIONS 12 /* a test may add */
#define CALL_LEN       5

struct thread {
	struct stack *stack;
	struct code_map *map;
	struct elf_image *images[FUNCTION_COUNT + MORE_FUNCTIONS];
	size_t n_images;
	uint64_t callee; /* of the calls in the functions' code; 0: what follows each */
	uint64_t now;
};

/* A function of these first bytes, and nops and calls behind them. */
static inline void add_function(struct thread *t, uint64_t at, const char *name, const void *bytes,
				size_t len)
{
	uint8_t code[FUNCTION_SIZE];
	struct elf_image *image;

	assert_true(t->n_images < FUNCTION_COUNT + MORE_FUNCTIONS);
	memset(code, 0x90, sizeof(code));
	/* Calls, behind which the tests return. */
	for (size_t i = 0x10; i < sizeof(code); i += 0x10) {
		int32_t rel = t->callee ? (int32_t)(t->callee - (at + i + CALL_LEN)) : 0;

		code[i] = 0xe8;
		memcpy(code + i + 1, &rel, sizeof(rel));
	}
	memcpy(code, bytes, len);
	image = elf_image__raw(code, sizeof(code), name, name);
	t->images[t->n_images++] = image;
	assert_int_equal(code_map__add(t->map, at, FUNCTION_SIZE, 0, image), 0);
}

static inline int start_thread_calling(void **state, uint64_t callee)
{
	static const char *const names[] = {"main",    "a",	    "b",       "c",
					    "handler", "handler_2", "restorer"};
	static const uint8_t sigreturn[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
	struct thread *t = calloc(1, sizeof(*t));

	t->callee = callee;
	t->map = code_map__new();
	for (size_t i = 0; i < FUNCTION_COUNT; i++) {
		uint64_t at = MAIN * (i + 1);

		add_function(t, at, names[i], sigreturn, at == RESTORER ? sizeof(sigreturn) : 0);
	}
	t->stack = stack__new(42, 43, "worker", t->map);
	*state = t;
	return 0;
}

static inline int start_thread(void **state)
{
	return start_thread_calling(state, 0);
}

static inline void end_stack(struct thread *t)
{
	tell_rules(t->stack);
	stack__free(t->stack);
}

static inline int end_thread(void **state)
{
	struct thread *t = *state;

	end_stack(t);
	code_map__free(t->map);
	for (size_t i = 0; i < t->n_images; i++)
		elf_image__free(t->images[i]);
	free(t);
	return 0;
}

static inline void branch(struct thread *t, enum branch_kind kind, uint64_t from, uint64_t to,
			  uint8_t len)
{
	t->now += 10;
	assert_int_equal(take_one(t->stack, &(struct branch){.time_ns = t->now,
							     .from = from,
							     .to = to,
							     .n_insns = 1,
							     .kind = (uint8_t)kind,
							     .len = len}),
			 0);
}

static inline void begin(struct thread *t, uint64_t at)
{
	branch(t, BRANCH_BEGIN, 0, at, 0);
}

/* Another stack, at time 0. */
static inline void start_anew(struct thread *t)
{
	end_stack(t);
	t->stack = stack__new(42, 43, "worker", t->map);
	t->now = 0;
}

static inline void call(struct thread *t, uint64_t from, uint64_t to)
{
	branch(t, BRANCH_CALL, from, to, CALL_LEN);
}

static inline void ret(struct thread *t, uint64_t from, uint64_t to)
{
	branch(t, BRANCH_RETURN, from, to, 1);
}

static inline void jump(struct thread *t, uint64_t from, uint64_t to)
{
	branch(t, BRANCH_JUMP, from, to, 2);
}

static inline void enter_kernel(struct thread *t, uint64_t from)
{
	branch(t, BRANCH_END_SYSCALL, from, 0, 2);
}

static inline void interrupt(struct thread *t, uint64_t at)
{
	branch(t, BRANCH_END_ASYNC, at, 0, 0);
}

static inline void gap(struct thread *t, uint8_t reason)
{
	t->now += 10;
	assert_int_equal(take_one(t->stack, &(struct branch){.time_ns = t->now,
							     .n_insns = 1,
							     .kind = BRANCH_GAP,
							     .reason = reason}),
			 0);
}

/* The handler returns to the restorer, which calls rt_sigreturn; the thread goes on at `to`. */
static inline void leave_handler(struct thread *t, uint64_t from, uint64_t to)
{
	ret(t, from, RESTORER);
	enter_kernel(t, RESTORER + 7);
	begin(t, to);
}

static inline void assert_on_top(struct thread *t, const char *name, long level)
{
	const struct function *top = top_function(t->stack);

	assert_non_null(top);
	assert_string_equal(top->name, name);
	assert_int_equal(top_level(t->stack), level);
}

static inline void assert_finished(struct thread *t, const char *expected)
{
	struct call_tree tree;

	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_int_equal(tree.pid, 42);
	assert_int_equal(tree.tid, 43);
	assert_string_equal(tree.comm, "worker");
	assert_tree(&tree, expected);
	call_tree__fini(&tree);
}

/* Whatever the branches were, what comes out are trees: how many of stacks beside the thread's. */
static inline size_t finish_coroutines(struct thread *t)
{
	struct call_tree tree;
	size_t n = 0;

	assert_int_equal(stack__finish(t->stack, &tree), 0);
	do {
		assert_well_formed(&tree);
		n += tree.coroutine > 0;
		call_tree__fini(&tree);
	} while (stack__finish_next(t->stack, &tree) == 1);
	return n;
}

#endif
