// SPDX-License-Identifier: MIT
/* Segments on both sides of a gap, and the stack taken at a trigger: which frames are the same. */
#include "stack_fixture.h"

/* main, which calls a from MAIN + 0x10, which calls b from A + 0x10, where there is a gap. */
static void run_into_a_gap(struct thread *t)
{
	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	gap(t, GAP_OVERFLOW);
}

static void test_the_same_frames_run_on(void **state)
{
	struct thread *t = *state;

	run_into_a_gap(t);
	begin(t, B + 0x40);
	ret(t, B + 0x50, A + 0x15);
	call(t, A + 0x20, C);
	ret(t, C + 0x20, A + 0x25);
	ret(t, A + 0x30, MAIN + 0x15);
	assert_finished(t, "main 10-90 inferred-start inferred-end inferred\n"
			   "  a 20-90 inferred\n"
			   "    b 30-60 inferred\n"
			   "      [gap: overflow] 40-50\n"
			   "    c 70-80\n");
}

static void test_what_it_has_left_meanwhile_has_ended(void **state)
{
	struct thread *t = *state;

	run_into_a_gap(t);
	begin(t, C + 0x10);
	ret(t, C + 0x20, A + 0x45);
	ret(t, A + 0x50, MAIN + 0x15);
	assert_finished(t, "main 10-70 inferred-start inferred-end inferred\n"
			   "  a 20-70 inferred\n"
			   "    b 30-40 inferred-end\n"
			   "    [gap: overflow] 40-50\n"
			   "    c 50-60 inferred-start\n");
}

/* a was called from elsewhere in main: it is another one. */
static void test_another_return_address_is_another_call(void **state)
{
	struct thread *t = *state;

	run_into_a_gap(t);
	begin(t, B + 0x40);
	ret(t, B + 0x50, A + 0x15);
	ret(t, A + 0x60, MAIN + 0x25);
	assert_finished(t, "main 10-70 inferred-start inferred-end inferred\n"
			   "  a 20-40 inferred-end\n"
			   "    b 30-40 inferred-end\n"
			   "  [gap: overflow] 40-50\n"
			   "  a 50-70 inferred-start\n"
			   "    b 50-60 inferred-start\n");
}

static void test_callers_that_only_a_later_segment_shows(void **state)
{
	struct thread *t = *state;

	begin(t, A);
	call(t, A + 0x10, B);
	gap(t, GAP_OVERFLOW);
	begin(t, B + 0x40);
	ret(t, B + 0x50, A + 0x15);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x20);
	ret(t, A + 0x30, C + 0x15);
	ret(t, C + 0x30, MAIN + 0x15);
	assert_finished(t, "main 10-90 inferred-start inferred-end inferred\n"
			   "  c 10-90 inferred-start inferred\n"
			   "    a 10-80 inferred-start inferred\n"
			   "      b 20-50 inferred\n"
			   "        [gap: overflow] 30-40\n"
			   "      [gap: overflow] 60-70\n");
}

/* The second segment hangs together with the third, which shows that both lie on the first one's
 * main. */
static void test_a_run_lies_on_the_main_of_the_one_before(void **state)
{
	struct thread *t = *state;

	run_into_a_gap(t);
	begin(t, C);
	call(t, C + 0x10, B);
	gap(t, GAP_OVERFLOW);
	begin(t, B + 0x20);
	ret(t, B + 0x30, C + 0x15);
	ret(t, C + 0x30, MAIN + 0x45);
	call(t, MAIN + 0x50, A);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x20);
	ret(t, A + 0x30, MAIN + 0x55);
	assert_finished(t, "main 10-140 inferred-start inferred-end inferred\n"
			   "  a 20-40 inferred-end\n"
			   "    b 30-40 inferred-end\n"
			   "  [gap: overflow] 40-50\n"
			   "  c 50-100 inferred-start inferred\n"
			   "    b 60-90 inferred\n"
			   "      [gap: overflow] 70-80\n"
			   "  a 110-140 inferred\n"
			   "    [gap: overflow] 120-130\n");
}

/* Of a recursion's frames that look alike, those are meant that make it as deep as before. */
static void test_recursion_is_as_deep_as_before(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	for (int i = 0; i < 4; i++)
		call(t, A + 0x10, A);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x20);
	ret(t, A + 0x30, A + 0x15);
	ret(t, A + 0x30, A + 0x15);
	assert_finished(t, "main 10-100 inferred-start inferred-end inferred\n"
			   "  a 20-100 inferred-end inferred\n"
			   "    a 30-100 inferred-end inferred\n"
			   "      a 40-100 inferred-end inferred\n"
			   "        a 50-100 inferred\n"
			   "          a 60-90 inferred\n"
			   "            [gap: overflow] 70-80\n");
}

/* Which of two frames of a it could be is not told by anything: what has changed least is likely.
 */
static void test_of_several_functions_the_nearest(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, A);
	gap(t, GAP_OVERFLOW);
	begin(t, B);
	ret(t, B + 0x30, A + 0x15);
	assert_finished(t, "main 10-60 inferred-start inferred-end inferred\n"
			   "  a 20-60 inferred-end inferred\n"
			   "    a 30-60 inferred-end inferred\n"
			   "      [gap: overflow] 40-50\n"
			   "      b 50-60 inferred-start\n");
}

/* More frames agree further below, but too many above them would have had to end. */
static void test_what_has_changed_least(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	call(t, B + 0x10, A);
	call(t, A + 0x20, C);
	call(t, C + 0x10, A);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	ret(t, C + 0x10, B + 0x25);
	ret(t, B + 0x30, A + 0x15);
	assert_finished(t, "main 10-100 inferred-start inferred-end inferred\n"
			   "  a 20-100 inferred-end inferred\n"
			   "    b 30-100 inferred-end inferred\n"
			   "      a 40-100 inferred-end inferred\n"
			   "        c 50-100 inferred-end inferred\n"
			   "          a 60-100 inferred-end inferred\n"
			   "            [gap: overflow] 70-80\n"
			   "            b 80-100 inferred-start\n"
			   "              c 80-90 inferred-start\n");
}

/* What is likely, but not sure, is no reason to take what is less likely. */
static void test_a_frame_below_is_not_taken_for_want_of_proof(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	call(t, C + 0x10, A);
	call(t, A + 0x20, HANDLER);
	call(t, HANDLER + 0x10, A);
	call(t, A + 0x20, HANDLER);
	gap(t, GAP_OVERFLOW);
	begin(t, B);
	ret(t, B + 0x10, A + 0x15);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x30);
	ret(t, A + 0x40, HANDLER + 0x15);
	assert_finished(t, "main 10-40 inferred-start inferred-end\n"
			   "  a 20-40 inferred-end\n"
			   "    b 30-40 inferred-end\n"
			   "[gap: overflow] 40-50\n"
			   "c 50-150 inferred-start inferred-end inferred\n"
			   "  a 60-150 inferred-end inferred\n"
			   "    handler 70-150 inferred-end inferred\n"
			   "      a 80-150 inferred\n"
			   "        handler 90-100 inferred-end\n"
			   "        [gap: overflow] 100-110\n"
			   "        b 110-120 inferred-start\n"
			   "        [gap: overflow] 130-140\n");
}

/* Between two snapshots anything may have happened: only main, which runs once, is the same. */
static void test_a_long_gap_wants_more(void **state)
{
	struct thread *t = *state;

	begin(t, A);
	gap(t, GAP_BETWEEN);
	begin(t, A + 0x20);
	call(t, A + 0x30, B);
	gap(t, GAP_BETWEEN);
	begin(t, B + 0x20);
	ret(t, B + 0x30, A + 0x35);
	ret(t, A + 0x30, MAIN + 0x15);
	gap(t, GAP_BETWEEN);
	begin(t, MAIN + 0x20);
	ret(t, MAIN + 0x30, C + 0x10);
	assert_finished(t, "a 10-20 inferred-start inferred-end\n"
			   "[gap] 20-30\n"
			   "c 30-110 inferred-start inferred-end inferred\n"
			   "  main 30-110 inferred-start inferred\n"
			   "    a 30-80 inferred-start inferred\n"
			   "      b 40-70 inferred\n"
			   "        [gap] 50-60\n"
			   "    [gap] 90-100\n");
}

static void test_the_stack_at_the_trigger_shows_the_callers(void **state)
{
	struct thread *t = *state;
	const uint64_t ips[] = {C + 0x10, B + 0x15, A + 0x15, MAIN + 0x15};

	assert_int_equal(stack__anchor(t->stack, 45, ips, 4), 0);
	begin(t, C);
	ret(t, C + 0x20, B + 0x25);
	call(t, B + 0x10, C);
	interrupt(t, C + 0x10);
	assert_finished(t, "main 10-40 inferred-start inferred-end inferred\n"
			   "  a 10-40 inferred-start inferred-end inferred\n"
			   "    b 10-40 inferred-start inferred-end\n"
			   "      c 10-20 inferred-start\n"
			   "      c 30-40 inferred-end\n");
}

/* The first frame and the trigger's are one: there is no other to compare with. */
static void test_the_stack_at_a_trigger_without_calls(void **state)
{
	struct thread *t = *state;
	const uint64_t ips[] = {A + 0x30, MAIN + 0x15};

	assert_int_equal(stack__anchor(t->stack, 25, ips, 2), 0);
	begin(t, A);
	interrupt(t, A + 0x30);
	assert_finished(t, "main 10-20 inferred-start inferred-end inferred\n"
			   "  a 10-20 inferred-start inferred-end\n");
}

static void test_a_stack_that_does_not_fit_is_not_used(void **state)
{
	struct thread *t = *state;
	const uint64_t ips[] = {C + 0x10, A + 0x15, MAIN + 0x15};

	assert_int_equal(stack__anchor(t->stack, 35, ips, 3), 0);
	begin(t, B);
	call(t, B + 0x10, C);
	interrupt(t, C + 0x10);
	assert_finished(t, "b 10-30 inferred-start inferred-end\n"
			   "  c 20-30 inferred-end\n");
}

/* Addresses behind one that is no code are rubbish. */
static void test_a_stack_is_used_as_far_as_it_is_code(void **state)
{
	struct thread *t = *state;
	const uint64_t ips[] = {C + 0x10, B + 0x15, A + 0x15, 0x1234567, MAIN + 0x15};

	assert_int_equal(stack__anchor(t->stack, 35, ips, 5), 0);
	begin(t, B);
	call(t, B + 0x10, C);
	interrupt(t, C + 0x10);
	assert_finished(t, "a 10-30 inferred-start inferred-end inferred\n"
			   "  b 10-30 inferred-start inferred-end\n"
			   "    c 20-30 inferred-end\n");
}

/* Each snapshot has its own; main is the same. */
static void test_a_stack_for_each_snapshot(void **state)
{
	struct thread *t = *state;
	const uint64_t first[] = {B + 0x10, A + 0x15, MAIN + 0x15};
	const uint64_t second[] = {B + 0x10, C + 0x15, MAIN + 0x45};

	assert_int_equal(stack__anchor(t->stack, 21, first, 3), 0);
	assert_int_equal(stack__anchor(t->stack, 41, second, 3), 0);
	begin(t, B);
	interrupt(t, B + 0x10);
	gap(t, GAP_BETWEEN);
	begin(t, B);
	interrupt(t, B + 0x10);
	assert_finished(t, "main 10-50 inferred-start inferred-end inferred\n"
			   "  a 10-30 inferred-start inferred-end inferred\n"
			   "    b 10-30 inferred-start inferred-end\n"
			   "      [untraced] 20-30 inferred-end\n"
			   "  [gap] 30-40\n"
			   "  c 40-50 inferred-start inferred-end inferred\n"
			   "    b 40-50 inferred-start inferred-end\n");
}

static void snapshot(struct thread *t, uint64_t at)
{
	begin(t, at);
	interrupt(t, at + 0x10);
	gap(t, GAP_BETWEEN);
}

/* Where no stack tells, nothing is joined; what goes on behind it does so on the joined frames. */
static void test_snapshots_in_a_row(void **state)
{
	struct thread *t = *state;
	const uint64_t ips[] = {B + 0x10, A + 0x15, MAIN + 0x15};
	const uint64_t others[] = {C + 0x10, MAIN + 0x45};

	assert_int_equal(stack__anchor(t->stack, 21, ips, 3), 0);
	assert_int_equal(stack__anchor(t->stack, 81, others, 2), 0);
	assert_int_equal(stack__anchor(t->stack, 111, ips, 3), 0);
	snapshot(t, B);
	snapshot(t, HANDLER);
	snapshot(t, C);
	begin(t, B);
	interrupt(t, B + 0x10);
	gap(t, GAP_OVERFLOW);
	begin(t, B + 0x20);
	ret(t, B + 0x20, A + 0x15);
	ret(t, A + 0x20, MAIN + 0x15);
	call(t, MAIN + 0x20, C);
	interrupt(t, C + 0x10);
	assert_finished(t, "main 10-170 inferred-start inferred-end inferred\n"
			   "  a 10-30 inferred-start inferred-end inferred\n"
			   "    b 10-30 inferred-start inferred-end\n"
			   "      [untraced] 20-30 inferred-end\n"
			   "  [gap] 30-40\n"
			   "  handler 40-60 inferred-start inferred-end\n"
			   "    [untraced] 50-60 inferred-end\n"
			   "  [gap] 60-70\n"
			   "  c 70-90 inferred-start inferred-end\n"
			   "    [untraced] 80-90 inferred-end\n"
			   "  [gap] 90-100\n"
			   "  a 100-150 inferred-start inferred\n"
			   "    b 100-140 inferred-start inferred\n"
			   "      [untraced] 110-120 inferred-end\n"
			   "      [gap: overflow] 120-130\n"
			   "  c 160-170 inferred-end\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_thread, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_same_frames_run_on),
		TEST(test_what_it_has_left_meanwhile_has_ended),
		TEST(test_another_return_address_is_another_call),
		TEST(test_callers_that_only_a_later_segment_shows),
		TEST(test_a_run_lies_on_the_main_of_the_one_before),
		TEST(test_recursion_is_as_deep_as_before),
		TEST(test_of_several_functions_the_nearest),
		TEST(test_what_has_changed_least),
		TEST(test_a_frame_below_is_not_taken_for_want_of_proof),
		TEST(test_a_long_gap_wants_more),
		TEST(test_the_stack_at_the_trigger_shows_the_callers),
		TEST(test_the_stack_at_a_trigger_without_calls),
		TEST(test_a_stack_that_does_not_fit_is_not_used),
		TEST(test_a_stack_is_used_as_far_as_it_is_code),
		TEST(test_a_stack_for_each_snapshot),
		TEST(test_snapshots_in_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
