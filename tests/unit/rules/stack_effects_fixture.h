/* SPDX-License-Identifier: MIT */
/* A thread in code of OCaml 5's: what its runtime does with fibers, as branches. */
#ifndef MTBPF_TESTS_STACK_EFFECTS_FIXTURE_H
#define MTBPF_TESTS_STACK_EFFECTS_FIXTURE_H

#include "stack_fixture.h"

enum {
	RUNSTACK = 0xa000,
	PERFORM = 0xb000,
	REPERFORM = 0xc000,
	RESUME = 0xd000,
	APPLY = 0xe000,
	C_CALL = 0xf000,
	RAISE = 0x10000,
	FREE_STACK = 0x11000,
	/* In RUNSTACK. */
	RUNS_AT = RUNSTACK + 0x20,
	RETURNS_TO = RUNS_AT + CALL_LEN,
	CATCHES_AT = RUNSTACK + 0x52,
	FREES_AT = RUNSTACK + 0x60,
	ENDS_AT = RUNSTACK + 0x70,
	/* In RAISE: pop 48(%r14); ret */
	RAISES_AT = RAISE + 4,
	/* What a resumption goes to, and what a handler's result does. */
	IDENTITY = HANDLER,
};

static inline int start(void **state)
{
	static const uint8_t raise[] = {0x41, 0x8f, 0x46, 48, 0xc3};
	struct thread *t;

	start_thread(state);
	t = *state;
	add_function(t, RUNSTACK, "caml_runstack", "", 0);
	add_function(t, PERFORM, "caml_perform", "", 0);
	add_function(t, REPERFORM, "caml_reperform", "", 0);
	add_function(t, RESUME, "caml_resume", "", 0);
	add_function(t, APPLY, "caml_apply3", "", 0);
	add_function(t, C_CALL, "caml_c_call", "", 0);
	add_function(t, RAISE, "caml_raise_exn", raise, sizeof(raise));
	add_function(t, FREE_STACK, "caml_free_stack", "", 0);
	begin(t, MAIN);
	return 0;
}

/* A handler around `function`. */
static inline void run(struct thread *t, uint64_t from, uint64_t function)
{
	call(t, from, RUNSTACK);
	call(t, RUNS_AT, function);
}

/* What is left of a fiber is the parent's: caml_runstack() goes to what handles the result. */
static inline void free_fiber(struct thread *t)
{
	call(t, FREES_AT, FREE_STACK);
	ret(t, FREE_STACK + 0x10, FREES_AT + CALL_LEN);
	jump(t, ENDS_AT, IDENTITY);
}

static inline void end_fiber(struct thread *t, uint64_t from, uint64_t back_to)
{
	ret(t, from, RETURNS_TO);
	free_fiber(t);
	ret(t, IDENTITY + 0x10, back_to);
}

/* `handler` is called by caml_apply3(), which goes to it. */
static inline void perform(struct thread *t, uint64_t from, uint64_t handler)
{
	call(t, from, PERFORM);
	jump(t, PERFORM + 0x20, APPLY);
	jump(t, APPLY + 0x10, handler);
}

/* The running function goes to caml_resume() in its own place. */
static inline void resume(struct thread *t, uint64_t from, uint64_t to)
{
	jump(t, from, RESUME);
	jump(t, RESUME + 0x20, IDENTITY);
	ret(t, IDENTITY + 0x10, to);
}

/* Of the thread's own stack nothing is to be said. */
static inline void finish_own(struct thread *t)
{
	struct call_tree tree;

	assert_int_equal(stack__finish(t->stack, &tree), 0);
	call_tree__fini(&tree);
}

static inline void assert_next(struct thread *t, const char *name, const char *expected)
{
	struct call_tree tree;

	assert_int_equal(stack__finish_next(t->stack, &tree), 1);
	assert_string_equal(tree.coroutine_name, name);
	assert_tree(&tree, expected);
	call_tree__fini(&tree);
}

static inline void assert_no_more(struct thread *t)
{
	struct call_tree tree;

	assert_int_equal(stack__finish_next(t->stack, &tree), 0);
}

/* b performs on a fiber of a's, whose handler leaves it to a's. */
static inline void reperform(struct thread *t)
{
	run(t, MAIN + 0x10, A);
	run(t, A + 0x10, B);
	perform(t, B + 0x10, HANDLER_2);
	jump(t, HANDLER_2 + 0x10, REPERFORM);
	jump(t, REPERFORM + 0x10, PERFORM + 0x10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end_thread)

#endif
