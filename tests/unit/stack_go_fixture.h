/* SPDX-License-Identifier: MIT */
/* A thread of a Go program: the functions that go from one goroutine to another. */
#ifndef MTBPF_TESTS_STACK_GO_FIXTURE_H
#define MTBPF_TESTS_STACK_GO_FIXTURE_H

#include "stack_fixture.h"

enum {
	GOGO = 0xa000,
	MCALL = 0xb000,
	GOEXIT = 0xc000,
	GOEXIT_0 = 0xd000,
	RECOVERY = 0xe000,
	MSTART_1 = 0xf000,
	SYSTEMSTACK = 0x10000,
	PREEMPT = 0x11000,
	EXECUTE = 0x12000,
	GOPARK = 0x13000,
	SCHEDULE = 0x14000,
	GOEXIT_BASE = 0x15000, /* what every goroutine returns to */
};

static inline int start(void **state)
{
	/* mov (%rbx), %rsp; jmp *%rbx */
	static const uint8_t code[] = {0x48, 0x8b, 0x23, 0xff, 0xe3};
	struct thread *t;

	start_thread(state);
	t = *state;
	add_function(t, GOGO, "gogo", code, sizeof(code));
	add_function(t, MCALL, "runtime.mcall", "", 0);
	add_function(t, GOEXIT, "runtime.Goexit", "", 0);
	add_function(t, GOEXIT_0, "runtime.goexit0", "", 0);
	add_function(t, RECOVERY, "runtime.recovery", "", 0);
	add_function(t, MSTART_1, "runtime.mstart1", "", 0);
	add_function(t, SYSTEMSTACK, "runtime.systemstack.abi0", code, sizeof(code));
	add_function(t, PREEMPT, "runtime.asyncPreempt.abi0", "", 0);
	add_function(t, EXECUTE, "runtime.execute", "", 0);
	add_function(t, GOPARK, "runtime.gopark", "", 0);
	add_function(t, SCHEDULE, "runtime.schedule", "", 0);
	add_function(t, GOEXIT_BASE, "runtime.goexit.abi0", "", 0);
	return 0;
}

/* main is mstart0(), which calls mstart1(), and b is the scheduler. */
static inline void start_first(struct thread *t, uint64_t entry)
{
	begin(t, MAIN);
	call(t, MAIN + 0x10, MSTART_1);
	call(t, MSTART_1 + 0x10, B);
	call(t, B + 0x10, GOGO);
	jump(t, GOGO + 3, entry);
}

static inline void schedule(struct thread *t, uint64_t from, uint64_t to)
{
	call(t, from, MCALL);
	call(t, MCALL + 0x10, B);
	call(t, B + 0x10, GOGO);
	jump(t, GOGO + 3, to);
}

static inline void assert_next(struct thread *t, const char *name, const char *expected)
{
	struct call_tree tree;

	assert_int_equal(stack__finish_next(t->stack, &tree), 1);
	assert_string_equal(tree.coroutine_name, name);
	assert_tree(&tree, expected);
	call_tree__fini(&tree);
}

#endif
