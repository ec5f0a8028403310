// SPDX-License-Identifier: MIT
/* Segments that hang together, and what shows only later where they belong. */
#include "stack_fixture.h"

/* main calls a, which calls b. */
static void begin_in_b(struct thread *t)
{
	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
}

/* And b calls a again. */
static void begin_in_second_a(struct thread *t)
{
	begin_in_b(t);
	call(t, B + 0x10, A);
}

/* From the second a, by all of these. */
static void return_to_main(struct thread *t)
{
	ret(t, A + 0x40, B + 0x15);
	ret(t, B + 0x40, A + 0x15);
	ret(t, A + 0x40, MAIN + 0x15);
}

/* Either a may be meant, until a segment shows what is below both. */
static void test_a_later_segment_tells_which_frame_was_meant(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, A);
	gap(t, GAP_OVERFLOW);
	begin(t, B);
	ret(t, B + 0x10, A + 0x25);
	call(t, A + 0x30, C);
	gap(t, GAP_OVERFLOW);
	begin(t, C + 0x10);
	ret(t, C + 0x20, A + 0x35);
	ret(t, A + 0x40, A + 0x15);
	ret(t, A + 0x40, MAIN + 0x15);
	assert_finished(t, "main 10-120 inferred-start inferred-end inferred\n"
			   "  a 20-120 inferred\n"
			   "    a 30-110 inferred\n"
			   "      [gap: overflow] 40-50\n"
			   "      b 50-60 inferred-start\n"
			   "      c 70-100 inferred\n"
			   "        [gap: overflow] 80-90\n");
}

/* No return shows more than one caller, but all of them together lead to what was there before. */
static void test_callers_that_show_one_by_one(void **state)
{
	struct thread *t = *state;

	begin_in_second_a(t);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	ret(t, C + 0x10, HANDLER + 0x15);
	gap(t, GAP_OVERFLOW);
	begin(t, HANDLER + 0x20);
	ret(t, HANDLER + 0x30, A + 0x35);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x40);
	ret(t, A + 0x50, MAIN + 0x15);
	assert_finished(t, "main 10-130 inferred-start inferred-end inferred\n"
			   "  a 20-130 inferred\n"
			   "    b 30-50 inferred-end\n"
			   "      a 40-50 inferred-end\n"
			   "    [gap: overflow] 50-60\n"
			   "    handler 60-100 inferred-start inferred\n"
			   "      c 60-70 inferred-start\n"
			   "      [gap: overflow] 80-90\n"
			   "    [gap: overflow] 110-120\n");
}

/* The last run lies on the one before it, and with that on the first. */
static void test_a_run_on_a_run_on_a_run(void **state)
{
	struct thread *t = *state;

	begin_in_b(t);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	ret(t, C + 0x10, HANDLER + 0x25);
	call(t, HANDLER + 0x10, C);
	gap(t, GAP_OVERFLOW);
	begin(t, B);
	ret(t, B + 0x10, HANDLER_2 + 0x25);
	call(t, HANDLER_2 + 0x10, B);
	gap(t, GAP_OVERFLOW);
	begin(t, B + 0x20);
	ret(t, B + 0x30, HANDLER_2 + 0x15);
	ret(t, HANDLER_2 + 0x30, C + 0x15);
	ret(t, C + 0x30, HANDLER + 0x15);
	ret(t, HANDLER + 0x30, A + 0x35);
	assert_finished(t, "main 10-170 inferred-start inferred-end inferred\n"
			   "  a 20-170 inferred-end inferred\n"
			   "    b 30-40 inferred-end\n"
			   "    [gap: overflow] 40-50\n"
			   "    handler 50-170 inferred-start inferred\n"
			   "      c 50-60 inferred-start\n"
			   "      c 70-160 inferred\n"
			   "        [gap: overflow] 80-90\n"
			   "        handler_2 90-150 inferred-start inferred\n"
			   "          b 90-100 inferred-start\n"
			   "          b 110-140 inferred\n"
			   "            [gap: overflow] 120-130\n");
}

/* Of the two frames of b only one is above those that have been there all the time. */
static void test_what_outlived_it_is_below_it(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, B);
	call(t, B + 0x10, A);
	call(t, A + 0x10, B);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	ret(t, C + 0x10, B + 0x25);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x20);
	ret(t, A + 0x30, B + 0x15);
	assert_finished(t, "main 10-100 inferred-start inferred-end inferred\n"
			   "  b 20-100 inferred-end inferred\n"
			   "    a 30-100 inferred\n"
			   "      b 40-80 inferred-end inferred\n"
			   "        [gap: overflow] 50-60\n"
			   "        c 60-70 inferred-start\n"
			   "      [gap: overflow] 80-90\n");
}

/* b has been called since, twice: that it was called only once before says nothing. */
static void test_what_may_be_on_later_frames_is_not_put_on_earlier_ones(void **state)
{
	struct thread *t = *state;

	begin_in_b(t);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	ret(t, C + 0x10, HANDLER + 0x25);
	call(t, HANDLER + 0x30, B);
	call(t, B + 0x10, B);
	gap(t, GAP_OVERFLOW);
	begin(t, HANDLER_2);
	gap(t, GAP_OVERFLOW);
	begin(t, HANDLER_2 + 0x10);
	ret(t, HANDLER_2 + 0x20, B + 0x35);
	assert_finished(t, "main 10-40 inferred-start inferred-end\n"
			   "  a 20-40 inferred-end\n"
			   "    b 30-40 inferred-end\n"
			   "[gap: overflow] 40-50\n"
			   "handler 50-130 inferred-start inferred-end inferred\n"
			   "  c 50-60 inferred-start\n"
			   "  b 70-130 inferred-end inferred\n"
			   "    b 80-130 inferred-end inferred\n"
			   "      [gap: overflow] 90-100\n"
			   "      handler_2 100-130 inferred-start inferred\n"
			   "        [gap: overflow] 110-120\n");
}

/* The last segment began with handler() and c on b: c ran before that, so handler() did. */
static void test_on_frames_that_a_later_segment_began_with(void **state)
{
	struct thread *t = *state;

	begin_in_second_a(t);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	gap(t, GAP_OVERFLOW);
	begin(t, HANDLER_2);
	ret(t, HANDLER_2 + 0x20, C + 0x15);
	ret(t, C + 0x20, HANDLER + 0x15);
	ret(t, HANDLER + 0x20, A + 0x35);
	return_to_main(t);
	assert_finished(t, "main 10-140 inferred-start inferred-end inferred\n"
			   "  a 20-140 inferred\n"
			   "    b 30-130 inferred\n"
			   "      a 40-120 inferred\n"
			   "        [gap: overflow] 50-60\n"
			   "        handler 60-110 inferred-start inferred\n"
			   "          c 60-100 inferred-start inferred\n"
			   "            [gap: overflow] 70-80\n"
			   "            handler_2 80-90 inferred-start\n");
}

/* c had jumped to b before the gap: the c that the last segment began with is another call. */
static void test_a_frame_that_has_ended_is_not_continued(void **state)
{
	struct thread *t = *state;

	begin_in_second_a(t);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	jump(t, C + 0x20, B);
	gap(t, GAP_OVERFLOW);
	begin(t, HANDLER_2);
	ret(t, HANDLER_2 + 0x20, C + 0x15);
	ret(t, C + 0x20, HANDLER + 0x15);
	ret(t, HANDLER + 0x20, A + 0x35);
	return_to_main(t);
	assert_finished(t, "main 10-150 inferred-start inferred-end inferred\n"
			   "  a 20-150 inferred\n"
			   "    b 30-140 inferred\n"
			   "      a 40-130 inferred\n"
			   "        [gap: overflow] 50-60\n"
			   "        handler 60-120 inferred-start inferred\n"
			   "          c 60-70 inferred-start\n"
			   "          b 70-80 inferred-end by-jump\n"
			   "          [gap: overflow] 80-90\n"
			   "          c 90-110 inferred-start\n"
			   "            handler_2 90-100 inferred-start\n");
}

static uint64_t random_function(unsigned int *seed)
{
	return MAIN * (1 + (uint64_t)rand_r(seed) % 5);
}

static void do_anything(struct thread *t, unsigned int *seed)
{
	uint64_t at = random_function(seed), to = random_function(seed);
	uint64_t site = 0x10 * (1 + (uint64_t)rand_r(seed) % 3);

	switch (rand_r(seed) % 8) {
	case 0:
	case 1:
	case 2:
		call(t, at + site, to);
		break;
	case 3:
	case 4:
	case 5:
		ret(t, at + 0x40, to + site + CALL_LEN);
		break;
	case 6:
		jump(t, at + 0x40, to);
		break;
	default:
		gap(t, rand_r(seed) % 8 ? GAP_OVERFLOW : GAP_BETWEEN);
		begin(t, to + (uint64_t)rand_r(seed) % 3);
	}
}

/* Whatever hangs together with what, it makes a tree. */
static void test_random_segments_give_trees(void **state)
{
	struct thread *t = *state;
	unsigned int seed = 1;
	size_t n_inferred = 0;

	for (int round = 0; round < 3000; round++) {
		struct call_tree tree;

		start_anew(t);
		begin(t, MAIN);
		for (int i = rand_r(&seed) % 120; i >= 0; i--)
			do_anything(t, &seed);
		assert_int_equal(stack__finish(t->stack, &tree), 0);
		assert_well_formed(&tree);
		for (size_t i = 0; i < tree.calls.n; i++)
			n_inferred += tree.calls.v[i].flags & CALL_INFERRED;
		call_tree__fini(&tree);
	}
	assert_true(n_inferred > 1000);
}

/* a calls itself by b, so one frame of a does not tell which of its calls it is. */
static void test_one_frame_of_a_recursion_waits_for_its_callers(void **state)
{
	struct thread *t = *state;

	begin_in_b(t);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	ret(t, C + 0x10, A + 0x25);
	call(t, A + 0x30, B);
	call(t, B + 0x10, A);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x40);
	ret(t, A + 0x40, B + 0x15);
	ret(t, B + 0x40, A + 0x35);
	return_to_main(t);
	assert_finished(t, "main 10-150 inferred-start inferred-end inferred\n"
			   "  a 20-150 inferred\n"
			   "    b 30-140 inferred\n"
			   "      [gap: overflow] 40-50\n"
			   "      a 50-130 inferred-start inferred\n"
			   "        c 50-60 inferred-start\n"
			   "        b 70-120 inferred\n"
			   "          a 80-110 inferred\n"
			   "            [gap: overflow] 90-100\n");
}

/*
 * On the lower a more frames agree, but on the upper one as few have changed: the callers, which
 * are shown later, tell that it is the upper one.
 */
static void test_the_level_with_fewer_changes_may_be_the_one(void **state)
{
	struct thread *t = *state;

	begin_in_second_a(t);
	call(t, A + 0x10, B);
	call(t, B + 0x20, HANDLER);
	call(t, HANDLER + 0x10, HANDLER_2);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	ret(t, C + 0x10, A + 0x25);
	ret(t, A + 0x40, B + 0x15);
	ret(t, B + 0x40, A + 0x15);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x20);
	return_to_main(t);
	assert_finished(t, "main 10-170 inferred-start inferred-end inferred\n"
			   "  a 20-170 inferred\n"
			   "    b 30-160 inferred\n"
			   "      a 40-150 inferred\n"
			   "        b 50-120 inferred\n"
			   "          handler 60-80 inferred-end\n"
			   "            handler_2 70-80 inferred-end\n"
			   "          [gap: overflow] 80-90\n"
			   "          a 90-110 inferred-start\n"
			   "            c 90-100 inferred-start\n"
			   "        [gap: overflow] 130-140\n");
}

/* No callers are shown, and two levels are as good as each other: neither is claimed. */
static void test_of_two_close_levels_neither_is_claimed(void **state)
{
	struct thread *t = *state;

	begin_in_second_a(t);
	call(t, A + 0x10, HANDLER);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	ret(t, C + 0x10, A + 0x25);
	assert_finished(t, "main 10-60 inferred-start inferred-end\n"
			   "  a 20-60 inferred-end\n"
			   "    b 30-60 inferred-end\n"
			   "      a 40-60 inferred-end\n"
			   "        handler 50-60 inferred-end\n"
			   "[gap: overflow] 60-70\n"
			   "a 70-80 inferred-start inferred-end\n"
			   "  c 70-80 inferred-start\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_thread, end_thread)

/*
 * All that the last segment shows had been there before the gaps. So what ran between was above it,
 * though it has made a call like one of those.
 */
static void test_what_was_there_all_the_time_has_not_begun_anew(void **state)
{
	struct thread *t = *state;

	begin_in_second_a(t);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x20);
	call(t, A + 0x10, B);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x30);
	return_to_main(t);
	assert_finished(t, "main 10-120 inferred-start inferred-end inferred\n"
			   "  a 20-120 inferred\n"
			   "    b 30-110 inferred\n"
			   "      a 40-100 inferred\n"
			   "        [gap: overflow] 50-60\n"
			   "        b 70-80 inferred-end\n"
			   "        [gap: overflow] 80-90\n");
}

/* Either frame of a may have run meanwhile: they have ended behind the first gap, most likely. */
static void test_of_those_that_have_ended_the_lowest_ran_between(void **state)
{
	struct thread *t = *state;

	begin_in_second_a(t);
	call(t, A + 0x20, HANDLER);
	call(t, HANDLER + 0x10, A);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x20);
	call(t, A + 0x30, C);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x40);
	ret(t, A + 0x50, B + 0x15);
	ret(t, B + 0x40, A + 0x15);
	ret(t, A + 0x50, MAIN + 0x15);
	assert_finished(t, "main 10-140 inferred-start inferred-end inferred\n"
			   "  a 20-140 inferred\n"
			   "    b 30-130 inferred\n"
			   "      a 40-120 inferred\n"
			   "        handler 50-70 inferred-end\n"
			   "          a 60-70 inferred-end\n"
			   "        [gap: overflow] 70-80\n"
			   "        c 90-100 inferred-end\n"
			   "        [gap: overflow] 100-110\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_later_segment_tells_which_frame_was_meant),
		TEST(test_callers_that_show_one_by_one),
		TEST(test_a_run_on_a_run_on_a_run),
		TEST(test_what_outlived_it_is_below_it),
		TEST(test_what_may_be_on_later_frames_is_not_put_on_earlier_ones),
		TEST(test_on_frames_that_a_later_segment_began_with),
		TEST(test_a_frame_that_has_ended_is_not_continued),
		TEST(test_random_segments_give_trees),
		TEST(test_what_was_there_all_the_time_has_not_begun_anew),
		TEST(test_of_those_that_have_ended_the_lowest_ran_between),
		TEST(test_one_frame_of_a_recursion_waits_for_its_callers),
		TEST(test_the_level_with_fewer_changes_may_be_the_one),
		TEST(test_of_two_close_levels_neither_is_claimed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
