// SPDX-License-Identifier: MIT
/* Near transfers in, call trees out. */
#include "stack_fixture.h"

static void test_calls_and_returns(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN + 1);
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x10, A);
	assert_on_top(t, "a", 1);
	call(t, A + 0x10, B);
	ret(t, B + 0x20, A + 0x15);
	ret(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x20, B);
	ret(t, B + 0x20, MAIN + 0x25);
	interrupt(t, MAIN + 0x30);
	assert_finished(t, "main 10-80 inferred-start inferred-end\n"
			   "  a 20-50\n"
			   "    b 30-40\n"
			   "  b 60-70\n");
}

static void test_nothing_at_all(void **state)
{
	assert_finished(*state, "");
}

static void test_callers_that_show_late(void **state)
{
	struct thread *t = *state;

	begin(t, B + 4);
	ret(t, B + 0x20, A + 0x15);
	assert_on_top(t, "a", -1);
	call(t, A + 0x20, C);
	ret(t, C + 0x20, A + 0x25);
	ret(t, A + 0x30, MAIN + 0x15);
	assert_on_top(t, "main", -2);
	interrupt(t, MAIN + 0x30);
	assert_finished(t, "main 10-60 inferred-start inferred-end\n"
			   "  a 10-50 inferred-start\n"
			   "    b 10-20 inferred-start\n"
			   "    c 30-40\n");
}

static void test_recursion(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, A);
	call(t, A + 0x10, A);
	ret(t, A + 0x20, A + 0x15);
	assert_on_top(t, "a", 2);
	ret(t, A + 0x20, A + 0x15);
	ret(t, A + 0x20, MAIN + 0x15);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-80 inferred-start inferred-end\n"
			   "  a 20-70\n"
			   "    a 30-60\n"
			   "      a 40-50\n");
}

static void test_a_call_that_only_reads_the_ip(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0x30);
	assert_finished(t, "main 10-30 inferred-start inferred-end\n");
}

static void test_tail_calls(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	jump(t, A + 0x10, B);
	assert_on_top(t, "b", 1);
	/* By a jump that depends. */
	branch(t, BRANCH_COND, B + 0x10, C, 2);
	ret(t, C + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	jump(t, MAIN + 0x20, A);
	interrupt(t, A + 0x10);
	assert_finished(t, "main 10-60 inferred-start\n"
			   "  a 20-30\n"
			   "  b 30-40 by-jump\n"
			   "  c 40-50 by-jump\n"
			   "a 60-70 inferred-end by-jump\n");
}

static void test_jumps_within_a_function(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	jump(t, A + 0x10, A + 0x20);
	jump(t, A + 0x30, A);
	ret(t, A + 0x20, MAIN + 0x15);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-60 inferred-start inferred-end\n"
			   "  a 20-50\n");
}

static void test_longjmp_to_a_caller(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	call(t, B + 0x10, C);
	jump(t, C + 0x10, A + 0x50);
	assert_on_top(t, "a", 1);
	ret(t, A + 0x60, MAIN + 0x15);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-70 inferred-start inferred-end\n"
			   "  a 20-60\n"
			   "    b 30-50 cut\n"
			   "      c 40-50 cut\n");
}

static void test_a_return_past_frames(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	ret(t, B + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-50 inferred-start inferred-end\n"
			   "  a 20-40\n"
			   "    b 30-40 cut\n");
}

static void test_a_return_that_is_a_jump(void **state)
{
	struct thread *t = *state;

	/* "push $b; ret", as a lazy binder does. */
	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	ret(t, A + 0x10, B);
	assert_on_top(t, "b", 1);
	/* Into the middle of a caller, but not behind its call. */
	ret(t, B + 0x10, MAIN + 0x80);
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0x90);
	assert_finished(t, "main 10-50 inferred-start inferred-end\n"
			   "  a 20-30\n"
			   "  b 30-40 by-jump cut\n");
}

static void test_another_stack_breaks_the_segment(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	ret(t, A + 0x10, C + 0x50);
	assert_on_top(t, "c", 0);
	ret(t, C + 0x60, B + 0x15);
	assert_on_top(t, "b", -1);
	interrupt(t, B + 0x20);
	assert_finished(t, "main 10-30 inferred-start cut\n"
			   "  a 20-30 cut\n"
			   "b 30-50 inferred-start inferred-end\n"
			   "  c 30-40 inferred-start\n");
}

static void test_a_function_that_falls_through_into_the_next(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	/* Nothing said that B was entered. */
	ret(t, B + 0x10, MAIN + 0x15);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-40 inferred-start inferred-end\n"
			   "  a 20-30\n"
			   "  b 30-30 by-jump\n");
}

static void test_code_that_nobody_knows(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, NOWHERE);
	assert_null(top_function(t->stack));
	assert_int_equal(top_level(t->stack), 1);
	call(t, NOWHERE + 0x10, A);
	ret(t, A + 0x20, NOWHERE + 0x15);
	ret(t, NOWHERE + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-60 inferred-start inferred-end\n"
			   "  [unknown] 20-50\n"
			   "    a 30-40\n");
}

static void test_a_gap_ends_everything(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	gap(t, GAP_OVERFLOW);
	begin(t, B + 0x10);
	ret(t, B + 0x20, C + 0x15);
	gap(t, GAP_UNMAPPED);
	assert_finished(t, "main 10-30 inferred-start inferred-end\n"
			   "  a 20-30 inferred-end\n"
			   "[gap: overflow] 30-40\n"
			   "c 40-60 inferred-start inferred-end\n"
			   "  b 40-50 inferred-start\n"
			   "[gap: unmapped] 60-60\n");
}

static void test_gaps_in_a_row_are_one_from_the_first(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	gap(t, GAP_OVERFLOW);
	gap(t, GAP_MISMATCH);
	call(t, MAIN + 0x10, A);
	begin(t, A);
	interrupt(t, A + 1);
	assert_finished(t, "main 10-20 inferred-start inferred-end\n"
			   "[gap: overflow] 20-50\n"
			   "a 50-60 inferred-start inferred-end\n");
}

static void test_a_gap_out_of_user_code(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	enter_kernel(t, MAIN + 0x10);
	gap(t, GAP_LOST);
	begin(t, A + 0x10);
	call(t, A + 0x20, B);
	assert_on_top(t, "b", 1);
	ret(t, B + 0x20, A + 0x25);
	interrupt(t, A + 0x30);
	assert_finished(t, "main 10-30 inferred-start inferred-end\n"
			   "  [syscall] 20-30 inferred-end\n"
			   "[gap: lost] 30-40\n"
			   "a 40-70 inferred-start inferred-end\n"
			   "  b 50-60\n");
}

static void count_insns(struct thread *t, enum branch_kind kind, uint64_t from, uint64_t to,
			uint8_t len, uint32_t n_insns)
{
	t->now += 10;
	assert_int_equal(take_one(t->stack, &(struct branch){.time_ns = t->now,
							     .from = from,
							     .to = to,
							     .n_insns = n_insns,
							     .kind = (uint8_t)kind,
							     .len = len}),
			 0);
}

static void test_instructions_are_their_functions_own(void **state)
{
	struct thread *t = *state;
	static const uint64_t expected[] = {1 + 400 + 32, 8 + 64, 16, 2000};
	static const char *const names[] = {"main", "a", "b", "c"};
	struct call_tree tree;
	size_t at = 0;

	count_insns(t, BRANCH_BEGIN, 0, MAIN, 0, 0);
	count_insns(t, BRANCH_CALL, MAIN + 0x10, A, CALL_LEN, 1);
	count_insns(t, BRANCH_CALL, A + 0x10, B, CALL_LEN, 8);
	count_insns(t, BRANCH_RETURN, B + 0x20, A + 0x15, 1, 16);
	count_insns(t, BRANCH_RETURN, A + 0x20, MAIN + 0x15, 1, 64);
	count_insns(t, BRANCH_END_SYSCALL, MAIN + 0x20, 0, 2, 400);
	count_insns(t, BRANCH_BEGIN, 0, MAIN + 0x22, 0, 0);
	/* Those between the last branch and the gap. */
	count_insns(t, BRANCH_GAP, MAIN + 0x30, 0, 0, 32);
	count_insns(t, BRANCH_BEGIN, 0, C, 0, 0);
	count_insns(t, BRANCH_END, C + 0x10, 0, 0, 2000);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	for (size_t i = 0; i < tree.calls.n; i++) {
		if (!tree.calls.v[i].function) {
			assert_int_equal(tree.calls.v[i].self_insns, 0);
			continue;
		}
		assert_string_equal(call__name(&tree.calls.v[i]), names[at]);
		assert_int_equal(tree.calls.v[i].self_insns, expected[at++]);
	}
	assert_int_equal(at, 4);
	call_tree__fini(&tree);
}

/* Of a call that goes on behind a gap, those on both sides of it. */
static void test_instructions_on_both_sides_of_a_gap(void **state)
{
	struct thread *t = *state;
	struct call_tree tree;

	count_insns(t, BRANCH_BEGIN, 0, MAIN, 0, 0);
	count_insns(t, BRANCH_GAP, MAIN + 0x30, 0, 0, 32);
	count_insns(t, BRANCH_BEGIN, 0, MAIN + 0x40, 0, 0);
	count_insns(t, BRANCH_END, MAIN + 0x50, 0, 0, 400);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_int_equal(tree.calls.n, 2);
	assert_int_equal(tree.calls.v[0].self_insns, 432);
	call_tree__fini(&tree);
}

static void test_where_calls_come_from(void **state)
{
	struct thread *t = *state;
	struct call_tree tree;

	begin(t, MAIN + 4);
	call(t, MAIN + 0x10, A);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_int_equal(tree.calls.v[0].entry_ip, MAIN + 4);
	assert_int_equal(tree.calls.v[0].call_ip, 0);
	assert_int_equal(tree.calls.v[1].entry_ip, A);
	assert_int_equal(tree.calls.v[1].call_ip, MAIN + 0x10);
	call_tree__fini(&tree);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_thread, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_calls_and_returns),
		TEST(test_nothing_at_all),
		TEST(test_callers_that_show_late),
		TEST(test_recursion),
		TEST(test_a_call_that_only_reads_the_ip),
		TEST(test_tail_calls),
		TEST(test_jumps_within_a_function),
		TEST(test_longjmp_to_a_caller),
		TEST(test_a_return_past_frames),
		TEST(test_a_return_that_is_a_jump),
		TEST(test_another_stack_breaks_the_segment),
		TEST(test_a_function_that_falls_through_into_the_next),
		TEST(test_code_that_nobody_knows),
		TEST(test_a_gap_ends_everything),
		TEST(test_gaps_in_a_row_are_one_from_the_first),
		TEST(test_a_gap_out_of_user_code),
		TEST(test_instructions_are_their_functions_own),
		TEST(test_instructions_on_both_sides_of_a_gap),
		TEST(test_where_calls_come_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
