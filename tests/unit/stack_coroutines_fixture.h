/* SPDX-License-Identifier: MIT */
/* A thread that has functions to switch stacks with, and what is on each of them. */
#ifndef MTBPF_TESTS_STACK_COROUTINES_FIXTURE_H
#define MTBPF_TESTS_STACK_COROUTINES_FIXTURE_H

#include "stack_fixture.h"

enum {
	SWITCH = 0xa000,
	SWAPCONTEXT = 0xb000,
	SETCONTEXT = 0xc000,
	GETCONTEXT = 0xd000,
	RESUME = 0xe000,
};

/* With calls of `callee` in the functions' code; 0: of what follows each. */
static inline int start_calling(void **state, uint64_t callee)
{
	/* mov %rsp, (%rdi); mov %rsi, %rsp; ret */
	static const uint8_t code[] = {0x48, 0x89, 0x27, 0x48, 0x89, 0xf4, 0xc3};
	struct thread *t;

	start_thread_calling(state, callee);
	t = *state;
	add_function(t, SWITCH, "co_switch", code, sizeof(code));
	add_function(t, SWAPCONTEXT, "swapcontext", "", 0);
	add_function(t, SETCONTEXT, "setcontext", "", 0);
	add_function(t, GETCONTEXT, "getcontext", "", 0);
	add_function(t, RESUME, "_Unwind_Resume", code, sizeof(code));
	return 0;
}

static inline int start(void **state)
{
	return start_calling(state, SWITCH);
}

/* The code does not tell where the switch is called. */
static inline int start_untold(void **state)
{
	return start_calling(state, 0);
}

/* Calls the switch function at `from`, which goes to `to`. */
static inline void go(struct thread *t, uint64_t from, uint64_t to)
{
	call(t, from, SWITCH);
	ret(t, SWITCH + 6, to);
}

static inline void assert_next(struct thread *t, const char *name, const char *expected)
{
	struct call_tree tree;

	assert_int_equal(stack__finish_next(t->stack, &tree), 1);
	assert_int_equal(tree.pid, 42);
	assert_int_equal(tree.tid, 43);
	assert_int_not_equal(tree.coroutine, 0);
	assert_string_equal(tree.coroutine_name, name);
	assert_tree(&tree, expected);
	call_tree__fini(&tree);
}

static inline void assert_no_more(struct thread *t)
{
	struct call_tree tree;

	assert_int_equal(stack__finish_next(t->stack, &tree), 0);
}

#define TEST(name)	  cmocka_unit_test_setup_teardown(name, start, end_thread)
#define TEST_UNTOLD(name) cmocka_unit_test_setup_teardown(name, start_untold, end_thread)

#endif
