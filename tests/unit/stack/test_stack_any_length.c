// SPDX-License-Identifier: MIT
/* Calls by who does not say how long the instruction is, and code that cannot be read. */
#include "stack_fixture.h"

enum { SWAP = 0xa000, SETJMP = 0xb000, LONGJMP = 0xc000 };

static void any_call(struct thread *t, uint64_t from, uint64_t to)
{
	branch(t, BRANCH_CALL, from, to, 0);
}

/* Through a register, direct, through a segment: all that there is. */
static void test_calls_of_each_length(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	for (uint64_t len = 2; len <= 9; len++) {
		any_call(t, MAIN + 0x10, A);
		assert_on_top(t, "a", 1);
		ret(t, A + 0x10, MAIN + 0x10 + len);
		assert_on_top(t, "main", 0);
	}
}

/* Elsewhere in the caller is no return of that call: a stack cut back by hand. */
static void test_not_about_there(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	any_call(t, MAIN + 0x10, A);
	any_call(t, A + 0x10, B);
	ret(t, B + 0x10, MAIN + 0x1a);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-40 inferred-start inferred-end\n"
			   "  a 20-40 cut\n"
			   "    b 30-40 cut\n");
}

static void test_recursion(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	any_call(t, MAIN + 0x10, A);
	/* Two calls so close that each may return to the other's address. */
	any_call(t, A + 0x10, A);
	any_call(t, A + 0x12, A);
	any_call(t, A + 0x10, A);
	ret(t, A + 0x20, A + 0x12);
	assert_on_top(t, "a", 3);
	ret(t, A + 0x20, A + 0x14);
	assert_on_top(t, "a", 2);
	ret(t, A + 0x20, A + 0x12);
	assert_on_top(t, "a", 1);
	ret(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

static void test_tail_call(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	any_call(t, MAIN + 0x10, A);
	jump(t, A + 0x10, B);
	ret(t, B + 0x10, MAIN + 0x15);
	assert_finished(t, "main 10-40 inferred-start inferred-end\n"
			   "  a 20-30\n"
			   "  b 30-40 by-jump\n");
}

/* "call next; pop" enters nothing; a call of the next function does. */
static void test_call_of_what_follows(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	any_call(t, MAIN + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	any_call(t, A - 5, A);
	assert_on_top(t, "a", 1);
}

/* Over a gap too, a frame is the same one whether a call or a return has shown it. */
static void test_over_a_gap(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	any_call(t, MAIN + 0x10, A);
	any_call(t, A + 0x10, B);
	gap(t, GAP_OVERFLOW);
	begin(t, B + 0x40);
	ret(t, B + 0x50, A + 0x15);
	ret(t, A + 0x50, MAIN + 0x15);
	assert_finished(t, "main 10-70 inferred-start inferred-end inferred\n"
			   "  a 20-70 inferred\n"
			   "    b 30-60 inferred\n"
			   "      [gap: overflow] 40-50\n");
}

/* It returns where it was called, and to another stack that waits about there. */
static void test_switches_of_stacks(void **state)
{
	struct thread *t = *state;

	add_function(t, SWAP, "swapcontext", "", 0);
	begin(t, MAIN);
	any_call(t, MAIN + 0x10, B);
	any_call(t, B + 0x10, SWAP);
	ret(t, SWAP + 0x10, B + 0x15);
	assert_on_top(t, "b", 1);
	any_call(t, B + 0x20, SWAP);
	ret(t, SWAP + 0x10, A);
	assert_on_top(t, "a", 0);
	any_call(t, A + 0x10, C);
	any_call(t, C + 0x10, SWAP);
	ret(t, SWAP + 0x10, B + 0x25);
	assert_on_top(t, "b", 1);
	any_call(t, B + 0x20, SWAP);
	ret(t, SWAP + 0x10, C + 0x15);
	assert_on_top(t, "c", 1);
}

static void test_longjmp(void **state)
{
	struct thread *t = *state;

	add_function(t, SETJMP, "_setjmp", "", 0);
	add_function(t, LONGJMP, "longjmp", "", 0);
	begin(t, MAIN);
	any_call(t, MAIN + 0x10, A);
	any_call(t, A + 0x10, SETJMP);
	ret(t, SETJMP + 0x10, A + 0x15);
	any_call(t, A + 0x20, B);
	any_call(t, B + 0x10, A);
	any_call(t, A + 0x30, LONGJMP);
	/* Not into the innermost frame of the function: that has not called setjmp(). */
	jump(t, LONGJMP + 0x10, A + 0x15);
	assert_on_top(t, "a", 1);
}

/* NOWHERE has no bytes: what returns there from a handler, and calls the kernel, is a restorer. */
static void test_unreadable_restorer(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	any_call(t, MAIN + 0x10, A);
	interrupt(t, A + 0x10);
	begin(t, HANDLER);
	ret(t, HANDLER + 0x10, NOWHERE);
	enter_kernel(t, NOWHERE + 7);
	begin(t, A + 0x10);
	assert_on_top(t, "a", 1);
	ret(t, A + 0x20, MAIN + 0x15);
	assert_finished(t, "main 10-80 inferred-start inferred-end\n"
			   "  a 20-80\n"
			   "    [untraced] 30-40\n"
			   "    handler 40-50 signal\n"
			   "    [unknown] 50-70 signal by-jump\n"
			   "      [syscall] 60-70\n");
}

/* A handler that leaves by a tail call of a function that begins with a syscall. */
static void test_no_restorer(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	interrupt(t, MAIN + 0x10);
	begin(t, HANDLER);
	jump(t, HANDLER + 0x10, B);
	enter_kernel(t, B + 5);
	begin(t, B + 7);
	assert_on_top(t, "b", 1);
	leave_handler(t, B + 0x10, MAIN + 0x10);
	assert_on_top(t, "main", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_calls_of_each_length, start_thread,
						end_thread),
		cmocka_unit_test_setup_teardown(test_not_about_there, start_thread, end_thread),
		cmocka_unit_test_setup_teardown(test_recursion, start_thread, end_thread),
		cmocka_unit_test_setup_teardown(test_tail_call, start_thread, end_thread),
		cmocka_unit_test_setup_teardown(test_call_of_what_follows, start_thread,
						end_thread),
		cmocka_unit_test_setup_teardown(test_over_a_gap, start_thread, end_thread),
		cmocka_unit_test_setup_teardown(test_switches_of_stacks, start_thread, end_thread),
		cmocka_unit_test_setup_teardown(test_longjmp, start_thread, end_thread),
		cmocka_unit_test_setup_teardown(test_unreadable_restorer, start_thread, end_thread),
		cmocka_unit_test_setup_teardown(test_no_restorer, start_thread, end_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
