// SPDX-License-Identifier: MIT
/* Several stacks wait at one address: which of them goes on is told by where it returns. */
#include "stack_coroutines_fixture.h"

/* Both wait at A + 0x15, and return to different places from there. */
static void two_that_wait(struct thread *t)
{
	begin(t, MAIN);
	go(t, MAIN + 0x10, B); /* 20-30 */
	call(t, B + 0x10, A);
	go(t, A + 0x10, MAIN + 0x15); /* 50-60 */
	go(t, MAIN + 0x20, C);	      /* 70-80 */
	call(t, C + 0x10, A);
	go(t, A + 0x10, MAIN + 0x25); /* 100-110 */
	go(t, MAIN + 0x30, A + 0x15); /* 120-130 */
}

static void test_the_last_that_waits_is_taken(void **state)
{
	struct thread *t = *state;

	two_that_wait(t);
	ret(t, A + 0x20, C + 0x15);
	assert_on_top(t, "c", 0);
}

/* What it did meanwhile was done by the other one. */
static void test_a_return_tells_which_it_was(void **state)
{
	struct thread *t = *state;

	two_that_wait(t);
	call(t, A + 0x18, HANDLER); /* 140-150 */
	ret(t, HANDLER + 1, A + 0x1d);
	ret(t, A + 0x20, B + 0x15); /* 160 */
	assert_on_top(t, "b", 0);
	go(t, B + 0x20, MAIN + 0x35); /* 170-180 */
	assert_on_top(t, "main", 0);
	go(t, MAIN + 0x40, A + 0x15); /* 190-200 */
	ret(t, A + 0x20, C + 0x15);
	assert_on_top(t, "c", 0);
	interrupt(t, C + 0x20); /* 220 */
	assert_finished(t, "main 10-220 inferred-start inferred-end\n"
			   "  co_switch 20-60\n"
			   "    [switched out] 30-60\n"
			   "  co_switch 70-110\n"
			   "    [switched out] 80-110\n"
			   "  co_switch 120-180\n"
			   "    [switched out] 130-180\n"
			   "  co_switch 190-220 inferred-end\n"
			   "    [switched out] 200-220 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "b 30-220 inferred-end\n"
		    "  a 40-160\n"
		    "    co_switch 50-130\n"
		    "      [switched out] 60-130\n"
		    "    handler 140-150\n"
		    "  co_switch 170-220 inferred-end\n"
		    "    [switched out] 180-220 inferred-end\n");
	assert_next(t, "coroutine 2",
		    "c 80-220 inferred-end\n"
		    "  a 90-210\n"
		    "    co_switch 100-200\n"
		    "      [switched out] 110-200\n");
	assert_no_more(t);
}

/* In its last frame a tail call has been made. */
static void test_a_tail_call_before_it_is_told(void **state)
{
	struct thread *t = *state;

	two_that_wait(t);
	jump(t, A + 0x18, HANDLER); /* 140 */
	call(t, HANDLER + 0x10, HANDLER_2);
	ret(t, HANDLER_2 + 1, HANDLER + 0x15);
	ret(t, HANDLER + 1, B + 0x15); /* 170 */
	assert_on_top(t, "b", 0);
	interrupt(t, B + 0x20); /* 180 */
	assert_finished(t, "main 10-180 inferred-start inferred-end\n"
			   "  co_switch 20-60\n"
			   "    [switched out] 30-60\n"
			   "  co_switch 70-110\n"
			   "    [switched out] 80-110\n"
			   "  co_switch 120-180 inferred-end\n"
			   "    [switched out] 130-180 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "b 30-180 inferred-end\n"
		    "  a 40-140\n"
		    "    co_switch 50-130\n"
		    "      [switched out] 60-130\n"
		    "  handler 140-170 by-jump\n"
		    "    handler_2 150-160\n");
	assert_next(t, "coroutine 2",
		    "c 80-180 inferred-end\n"
		    "  a 90-180 inferred-end\n"
		    "    co_switch 100-180 inferred-end\n"
		    "      [switched out] 110-180 inferred-end\n");
}

/*
 * The switch seems to come back to who called it: but another one had waited at that place since
 * before the trace, as its return tells.
 */
static void test_one_that_waited_at_the_same_place(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	go(t, A + 0x10, A + 0x15); /* 30-40 */
	assert_on_top(t, "a", 1);
	call(t, A + 0x20, B); /* 50-60 */
	ret(t, B + 1, A + 0x25);
	ret(t, A + 0x30, C + 0x15); /* 70 */
	assert_on_top(t, "c", -1);
	go(t, C + 0x20, A + 0x15); /* 80-90 */
	ret(t, A + 0x30, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  a 20-100\n"
			   "    co_switch 30-90\n"
			   "      [switched out] 40-90\n");
	assert_next(t, "coroutine 1",
		    "c 40-100 inferred-start inferred-end\n"
		    "  a 40-70 inferred-start\n"
		    "    b 50-60\n"
		    "  co_switch 80-100 inferred-end\n"
		    "    [switched out] 90-100 inferred-end\n");
	assert_no_more(t);
}

/* The first return excludes the one assumed and leaves two; the second one tells. */
static void test_returns_tell_step_by_step(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	go(t, MAIN + 0x10, C); /* 20-30 */
	call(t, C + 0x10, B);
	call(t, B + 0x10, A);
	go(t, A + 0x10, MAIN + 0x15); /* 60-70 */
	go(t, MAIN + 0x20, HANDLER);  /* 80-90 */
	call(t, HANDLER + 0x10, B);
	call(t, B + 0x10, A);
	go(t, A + 0x10, MAIN + 0x25);  /* 120-130 */
	go(t, MAIN + 0x30, HANDLER_2); /* 140-150 */
	call(t, HANDLER_2 + 0x10, A);
	go(t, A + 0x10, MAIN + 0x35); /* 170-180 */
	go(t, MAIN + 0x40, A + 0x15); /* 190-200 */
	ret(t, A + 0x20, B + 0x15);
	assert_on_top(t, "b", 1);
	ret(t, B + 0x20, C + 0x15); /* 220 */
	assert_on_top(t, "c", 0);
	interrupt(t, C + 0x20); /* 230 */
	assert_finished(t, "main 10-230 inferred-start inferred-end\n"
			   "  co_switch 20-70\n"
			   "    [switched out] 30-70\n"
			   "  co_switch 80-130\n"
			   "    [switched out] 90-130\n"
			   "  co_switch 140-180\n"
			   "    [switched out] 150-180\n"
			   "  co_switch 190-230 inferred-end\n"
			   "    [switched out] 200-230 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "c 30-230 inferred-end\n"
		    "  b 40-220\n"
		    "    a 50-210\n"
		    "      co_switch 60-200\n"
		    "        [switched out] 70-200\n");
	assert_next(t, "coroutine 2",
		    "handler 90-230 inferred-end\n"
		    "  b 100-230 inferred-end\n"
		    "    a 110-230 inferred-end\n"
		    "      co_switch 120-230 inferred-end\n"
		    "        [switched out] 130-230 inferred-end\n");
	assert_next(t, "coroutine 3",
		    "handler_2 150-230 inferred-end\n"
		    "  a 160-230 inferred-end\n"
		    "    co_switch 170-230 inferred-end\n"
		    "      [switched out] 180-230 inferred-end\n");
	assert_no_more(t);
}

/* It is told by a later return: what returned before is its own as well. */
static void test_one_that_is_told_late(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, C);
	call(t, C + 0x10, A);
	go(t, A + 0x10, A + 0x15); /* 40-50 */
	ret(t, A + 0x20, C + 0x15);
	jump(t, C + 0x20, HANDLER); /* 70 */
	ret(t, HANDLER + 1, B + 0x15);
	assert_on_top(t, "b", -1);
	go(t, B + 0x20, A + 0x15); /* 90-100 */
	assert_on_top(t, "a", 2);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  c 20-100 inferred-end\n"
			   "    a 30-100 inferred-end\n"
			   "      co_switch 40-100\n"
			   "        [switched out] 50-100\n");
	assert_next(t, "coroutine 1",
		    "b 50-100 inferred-start inferred-end\n"
		    "  c 50-70 inferred-start\n"
		    "    a 50-60 inferred-start\n"
		    "  handler 70-80 by-jump\n"
		    "  co_switch 90-100 inferred-end\n"
		    "    [switched out] 100-100 inferred-end\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_last_that_waits_is_taken),
		TEST(test_a_return_tells_which_it_was),
		TEST(test_returns_tell_step_by_step),
		TEST(test_a_tail_call_before_it_is_told),
		TEST(test_one_that_waited_at_the_same_place),
		TEST(test_one_that_is_told_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
