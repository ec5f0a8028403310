// SPDX-License-Identifier: MIT
/* Return probes: the kernel's trampoline stands where a function returns to. */
#include "stack_fixture.h"

enum { TRAMPOLINE = 0xa000, SYSCALL = TRAMPOLINE + 0xb, RETURNS = TRAMPOLINE + 0x11 };

static int start(void **state)
{
	struct thread *t;

	start_thread(state);
	t = *state;
	add_function(t, TRAMPOLINE, "[uprobes]", "", 0);
	begin(t, MAIN);
	return 0;
}

/* Linux 6.11 and later: a system call, and a RET to where the function would have returned. */
static void return_by_syscall(struct thread *t, uint64_t from, uint64_t to)
{
	ret(t, from, TRAMPOLINE);
	enter_kernel(t, SYSCALL);
	begin(t, SYSCALL + 2);
	ret(t, RETURNS, to);
}

/* Before that: a trap. */
static void return_by_trap(struct thread *t, uint64_t from, uint64_t to)
{
	ret(t, from, TRAMPOLINE);
	interrupt(t, TRAMPOLINE);
	begin(t, to);
}

static void test_by_syscall(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	return_by_syscall(t, B + 0x10, A + 0x15);
	assert_on_top(t, "a", 1);
	return_by_syscall(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-110 inferred-start inferred-end\n"
			   "  a 20-80\n"
			   "    b 30-40\n"
			   "    [uprobes] 40-70 by-jump\n"
			   "      [syscall] 50-60\n"
			   "  [uprobes] 80-110 by-jump\n"
			   "    [syscall] 90-100\n");
}

static void test_by_trap(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	return_by_trap(t, B + 0x10, A + 0x15);
	assert_on_top(t, "a", 1);
	return_by_trap(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-90 inferred-start inferred-end\n"
			   "  a 20-70\n"
			   "    b 30-40\n"
			   "    [uprobes] 40-60 by-jump\n"
			   "      [untraced] 50-60\n"
			   "  [uprobes] 70-90 by-jump\n"
			   "    [untraced] 80-90\n");
}

/* What was called has gone on to another function, which returns in its place. */
static void test_behind_a_tail_call(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, A);
	jump(t, A + 0x10, B);
	return_by_syscall(t, B + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

/* The callers are known by their returns alone. */
static void test_of_a_root(void **state)
{
	struct thread *t = *state;

	return_by_syscall(t, MAIN + 0x10, A + 0x15);
	assert_on_top(t, "a", -1);
	return_by_trap(t, A + 0x20, B + 0x15);
	assert_on_top(t, "b", -2);
	assert_finished(t, "b 10-80 inferred-start inferred-end\n"
			   "  a 10-60 inferred-start\n"
			   "    main 10-20 inferred-start\n"
			   "    [uprobes] 20-50 by-jump\n"
			   "      [syscall] 30-40\n"
			   "  [uprobes] 60-80 by-jump\n"
			   "    [untraced] 70-80\n");
}

/* Its caller has been left by a longjmp(), or is not the one that is known. */
static void test_to_an_outer_frame(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	return_by_trap(t, B + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_by_syscall), TEST(test_by_trap),	     TEST(test_behind_a_tail_call),
		TEST(test_of_a_root),  TEST(test_to_an_outer_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
