// SPDX-License-Identifier: MIT
/* Behind a gap any of a thread's stacks may run: which one, its frames tell. */
#include "stack_coroutines_fixture.h"

/* main waits at MAIN + 0x15 for a coroutine, in which a, called by b, runs. */
static void run_a_coroutine(struct thread *t)
{
	begin(t, MAIN);
	go(t, MAIN + 0x10, B); /* 20-30 */
	call(t, B + 0x10, A);  /* 40 */
}

static void test_the_other_one_runs(void **state)
{
	struct thread *t = *state;

	run_a_coroutine(t);
	gap(t, GAP_OVERFLOW); /* 50 */
	begin(t, C);	      /* 60 */
	ret(t, C + 0x20, MAIN + 0x25);
	go(t, MAIN + 0x30, A + 0x25); /* 80-90 */
	ret(t, A + 0x30, B + 0x15);
	interrupt(t, B + 0x20);
	assert_finished(t, "main 10-110 inferred-start inferred-end inferred\n"
			   "  co_switch 20-60 inferred-end\n"
			   "    [switched out] 30-60 inferred-end\n"
			   "  c 60-70 inferred-start\n"
			   "  co_switch 80-110 inferred-end\n"
			   "    [switched out] 90-110 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "b 30-110 inferred-end inferred\n"
		    "  a 40-100 inferred\n"
		    "    [gap: overflow] 50-60\n"
		    "    [switched out] 60-90\n");
	assert_no_more(t);
}

/* It waited for all of the gap: so did its switch. */
static void test_one_that_waits_on(void **state)
{
	struct thread *t = *state;

	run_a_coroutine(t);
	gap(t, GAP_OVERFLOW); /* 50 */
	begin(t, A + 0x20);   /* 60 */
	ret(t, A + 0x30, B + 0x15);
	go(t, B + 0x20, MAIN + 0x15); /* 80-90 */
	interrupt(t, MAIN + 0x20);
	assert_finished(t, "main 10-100 inferred-start inferred-end inferred\n"
			   "  co_switch 20-90\n"
			   "    [switched out] 30-90\n");
	assert_next(t, "coroutine 1",
		    "b 30-100 inferred-end inferred\n"
		    "  a 40-70 inferred\n"
		    "    [gap: overflow] 50-60\n"
		    "  co_switch 80-100 inferred-end\n"
		    "    [switched out] 90-100 inferred-end\n");
	assert_no_more(t);
}

/* Two coroutines wait in a, called by b and by c; main runs into a gap. */
static void run_main_of_three(struct thread *t)
{
	begin(t, MAIN);
	go(t, MAIN + 0x10, B); /* 20-30 */
	call(t, B + 0x10, A);
	go(t, A + 0x10, MAIN + 0x15); /* 50-60 */
	go(t, MAIN + 0x20, C);	      /* 70-80 */
	call(t, C + 0x10, A);
	go(t, A + 0x10, MAIN + 0x25); /* 100-110 */
	gap(t, GAP_OVERFLOW);	      /* 120 */
}

/* Which of them, is told by the callers that it shows, although another one was left later. */
static void test_callers_tell_which(void **state)
{
	struct thread *t = *state;

	run_main_of_three(t);
	begin(t, A + 0x20); /* 130 */
	ret(t, A + 0x30, B + 0x15);
	interrupt(t, B + 0x20);
	assert_finished(t, "main 10-120 inferred-start inferred-end\n"
			   "  co_switch 20-60\n"
			   "    [switched out] 30-60\n"
			   "  co_switch 70-110\n"
			   "    [switched out] 80-110\n"
			   "[gap: overflow] 120-130\n");
	assert_next(t, "coroutine 1",
		    "b 30-150 inferred-end inferred\n"
		    "  a 40-140 inferred\n"
		    "    co_switch 50-130 inferred-end\n"
		    "      [switched out] 60-130 inferred-end\n");
	assert_next(t, "coroutine 2",
		    "c 80-150 inferred-end\n"
		    "  a 90-150 inferred-end\n"
		    "    co_switch 100-150 inferred-end\n"
		    "      [switched out] 110-150 inferred-end\n");
	assert_no_more(t);
}

/* Nothing tells which: no callers are made up. */
static void test_unsure_ones_stand_by_themselves(void **state)
{
	struct thread *t = *state;

	run_main_of_three(t);
	begin(t, A + 0x20);
	call(t, A + 0x30, HANDLER);
	gap(t, GAP_OVERFLOW);
	begin(t, MAIN + 0x30);
	go(t, MAIN + 0x40, A + 0x15); /* whom, is not told either */
	assert_finished(t, "main 10-180 inferred-start inferred-end inferred\n"
			   "  co_switch 20-60\n"
			   "    [switched out] 30-60\n"
			   "  co_switch 70-110\n"
			   "    [switched out] 80-110\n"
			   "  [gap: overflow] 120-130\n"
			   "  [switched out] 130-160\n"
			   "  co_switch 170-180 inferred-end\n"
			   "    [switched out] 180-180 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "b 30-180 inferred-end\n"
		    "  a 40-180 inferred-end\n"
		    "    co_switch 50-180 inferred-end\n"
		    "      [switched out] 60-180 inferred-end\n");
	assert_next(t, "coroutine 2",
		    "c 80-180 inferred-end\n"
		    "  a 90-180 inferred-end\n"
		    "    co_switch 100-180 inferred-end\n"
		    "      [switched out] 110-180 inferred-end\n");
	assert_next(t, "coroutine 3",
		    "a 130-150 inferred-start inferred-end\n"
		    "  handler 140-150 inferred-end\n"
		    "[gap: overflow] 150-160\n");
	assert_next(t, "coroutine 5", "a 180-180 inferred-start inferred-end\n");
	assert_no_more(t);
}

/* Callers found late, frames that still run, and who left whom: all of it comes along. */
static void test_all_that_it_did_is_moved(void **state)
{
	struct thread *t = *state;
	struct call_tree tree;

	run_a_coroutine(t);
	gap(t, GAP_OVERFLOW); /* 50 */
	begin(t, HANDLER);    /* 60 */
	call(t, HANDLER + 0x10, SWITCH);
	jump(t, SWITCH + 6, C + 0x1c); /* 80: a receiver */
	ret(t, C + 0x20, MAIN + 0x25);
	call(t, MAIN + 0x30, A);
	gap(t, GAP_OVERFLOW); /* 110 */
	begin(t, A + 0x10);
	ret(t, A + 0x20, MAIN + 0x35);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_tree(&tree, "main 10-130 inferred-start inferred-end inferred\n"
			   "  co_switch 20-60 inferred-end\n"
			   "    [switched out] 30-60 inferred-end\n"
			   "  c 60-90 inferred-start inferred\n"
			   "    handler 60-80 inferred-start cut by-longjmp\n"
			   "      co_switch 70-80 cut by-longjmp\n"
			   "  a 100-130 inferred\n"
			   "    [gap: overflow] 110-120\n");
	assert_int_equal(tree.unwinds.n, 1);
	assert_string_equal(call__name(&tree.calls.v[tree.unwinds.v[0].from]), "co_switch");
	assert_int_equal(tree.calls.v[tree.unwinds.v[0].from].start_ns, 70);
	assert_string_equal(call__name(&tree.calls.v[tree.unwinds.v[0].to]), "c");
	call_tree__fini(&tree);
}

/* A function alone says little where two stacks had it, even if one of them is known. */
static void test_a_function_alone_is_not_enough(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	go(t, A + 0x10, B); /* 30-40 */
	call(t, B + 0x10, A);
	gap(t, GAP_OVERFLOW); /* 60 */
	begin(t, A + 0x30);
	ret(t, A + 0x40, B + 0x15);
	go(t, B + 0x20, A + 0x25); /* 90-110 */
	interrupt(t, A + 0x30);
	assert_finished(t, "main 10-110 inferred-start inferred-end\n"
			   "  a 20-110 inferred-end\n"
			   "    co_switch 30-110 inferred-end\n"
			   "      [switched out] 40-110 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "b 40-110 inferred-end inferred\n"
		    "  a 50-80 inferred\n"
		    "    [gap: overflow] 60-70\n"
		    "  co_switch 90-110 inferred-end\n"
		    "    [switched out] 100-110 inferred-end\n");
	assert_next(t, "coroutine 3", "a 100-110 inferred-start inferred-end\n");
	assert_no_more(t);
}

/* Another coroutine in the place of one that has ended has none of its frames. */
static void test_one_that_has_ended(void **state)
{
	struct thread *t = *state;

	run_a_coroutine(t);
	gap(t, GAP_OVERFLOW);	       /* 50 */
	begin(t, A + 0x18);	       /* 60 */
	call(t, A + 0x20, SETCONTEXT); /* 70 */
	ret(t, SETCONTEXT + 0x20, MAIN + 0x15);
	gap(t, GAP_OVERFLOW); /* 90 */
	begin(t, MAIN + 0x18);
	go(t, MAIN + 0x20, B); /* 110-120 */
	gap(t, GAP_OVERFLOW);
	assert_finished(t, "main 10-130 inferred-start inferred-end inferred\n"
			   "  co_switch 20-80\n"
			   "    [switched out] 30-80\n"
			   "  [gap: overflow] 90-100\n"
			   "  co_switch 110-130 inferred-end\n"
			   "    [switched out] 120-130 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "b 30-80 inferred-end inferred\n"
		    "  a 40-80 cut inferred\n"
		    "    [gap: overflow] 50-60\n"
		    "    setcontext 70-80 cut\n"
		    "b 120-130 inferred-end\n"
		    "[gap: overflow] 130-130\n");
	assert_no_more(t);
}

/* `function` calls a, which calls the handler: that waits. */
static void wait_in_handler(struct thread *t, uint64_t from, uint64_t function)
{
	go(t, from, function);
	call(t, function + 0x10, A);
	call(t, A + 0x20, HANDLER);
	go(t, HANDLER + 0x10, from + CALL_LEN);
}

/* What stands apart may be the same as another one, whose callers are known: that is taken. */
static void test_what_stands_apart_is_no_rival(void **state)
{
	struct thread *t = *state;
	struct call_tree tree;

	begin(t, MAIN);
	wait_in_handler(t, MAIN + 0x10, B); /* 20-70: b is from 30 on */
	wait_in_handler(t, MAIN + 0x20, C); /* 80-130 */
	gap(t, GAP_OVERFLOW);
	begin(t, HANDLER + 0x18); /* 150: one of them */
	ret(t, HANDLER + 0x20, A + 0x25);
	call(t, A + 0x20, HANDLER);
	go(t, HANDLER + 0x10, MAIN + 0x35);
	go(t, MAIN + 0x40, C + 0x15); /* the other one */
	go(t, C + 0x20, MAIN + 0x45);
	gap(t, GAP_OVERFLOW);
	begin(t, MAIN + 0x48);
	go(t, MAIN + 0x50, HANDLER + 0x15);
	ret(t, HANDLER + 0x20, A + 0x25);
	interrupt(t, A + 0x30);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	call_tree__fini(&tree);
	assert_next(t, "coroutine 1",
		    "b 30-290 inferred-end inferred\n"
		    "  a 40-290 inferred-end inferred\n"
		    "    handler 50-280 inferred\n"
		    "      co_switch 60-270\n"
		    "        [switched out] 70-270\n");
}

/* What is known of a stack is what all segments before have shown of it. */
static void test_gaps_in_a_row(void **state)
{
	struct thread *t = *state;

	begin(t, A);
	ret(t, A + 0x20, MAIN + 0x15);
	go(t, MAIN + 0x20, C);	      /* 30-40 */
	go(t, C + 0x10, MAIN + 0x25); /* 50-60 */
	call(t, MAIN + 0x30, B);
	call(t, B + 0x10, A);
	gap(t, GAP_OVERFLOW); /* 90 */
	begin(t, HANDLER);    /* 100 */
	ret(t, HANDLER + 0x20, A + 0x25);
	ret(t, A + 0x30, B + 0x15);
	gap(t, GAP_OVERFLOW); /* 130 */
	begin(t, MAIN + 0x40);
	call(t, MAIN + 0x50, A);
	assert_finished(t, "main 10-150 inferred-start inferred-end inferred\n"
			   "  a 10-20 inferred-start\n"
			   "  co_switch 30-60\n"
			   "    [switched out] 40-60\n"
			   "  b 70-130 inferred-end inferred\n"
			   "    a 80-120 inferred\n"
			   "      [gap: overflow] 90-100\n"
			   "      handler 100-110 inferred-start\n"
			   "  [gap: overflow] 130-140\n"
			   "  a 150-150 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "c 40-150 inferred-end\n"
		    "  co_switch 50-150 inferred-end\n"
		    "    [switched out] 60-150 inferred-end\n");
	assert_no_more(t);
}

/*
 * All wait at A + 0x15: that it was not the one that runs is told by a return to where main's a
 * returns, which waits since before the gap.
 */
static void test_one_from_before_returns(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	go(t, A + 0x10, B);   /* 30-40 */
	gap(t, GAP_OVERFLOW); /* 50 */
	begin(t, B + 0x10);
	jump(t, B + 0x20, A);
	go(t, A + 0x10, A + 0x15); /* 80-90 */
	ret(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  a 20-100\n"
			   "    co_switch 30-90\n"
			   "      [switched out] 40-90\n");
	assert_next(t, "coroutine 1",
		    "b 40-70 inferred\n"
		    "  [gap: overflow] 50-60\n"
		    "a 70-100 inferred-end by-jump\n"
		    "  co_switch 80-100 inferred-end\n"
		    "    [switched out] 90-100 inferred-end\n");
	assert_no_more(t);
}

/* Coroutines that have the same frames are one as good as the other, but each is one only. */
static void test_each_is_one_only(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	for (int i = 0; i < 2; i++) {
		go(t, MAIN + 0x10, B);
		call(t, B + 0x10, A);
		go(t, A + 0x10, MAIN + 0x15);
	}
	gap(t, GAP_OVERFLOW); /* 120 */
	begin(t, MAIN + 0x18);
	go(t, MAIN + 0x20, A + 0x15); /* 140-150 */
	ret(t, A + 0x20, B + 0x15);   /* 160 */
	go(t, B + 0x20, MAIN + 0x25); /* 170-180 */
	go(t, MAIN + 0x30, A + 0x15); /* 190-200 */
	ret(t, A + 0x20, B + 0x15);   /* 210 */
	go(t, B + 0x30, MAIN + 0x35); /* 220-230 */
	assert_finished(t, "main 10-230 inferred-start inferred-end inferred\n"
			   "  co_switch 20-60\n"
			   "    [switched out] 30-60\n"
			   "  co_switch 70-110\n"
			   "    [switched out] 80-110\n"
			   "  [gap: overflow] 120-130\n"
			   "  co_switch 140-180\n"
			   "    [switched out] 150-180\n"
			   "  co_switch 190-230\n"
			   "    [switched out] 200-230\n");
	assert_next(t, "coroutine 1",
		    "b 30-230 inferred-end inferred\n"
		    "  a 40-210 inferred\n"
		    "    co_switch 50-200\n"
		    "      [switched out] 60-200\n"
		    "  co_switch 220-230 inferred-end\n"
		    "    [switched out] 230-230 inferred-end\n");
	assert_next(t, "coroutine 2",
		    "b 80-230 inferred-end inferred\n"
		    "  a 90-160 inferred\n"
		    "    co_switch 100-150\n"
		    "      [switched out] 110-150\n"
		    "  co_switch 170-230 inferred-end\n"
		    "    [switched out] 180-230 inferred-end\n");
	assert_no_more(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_other_one_runs),
		TEST(test_one_that_waits_on),
		TEST(test_callers_tell_which),
		TEST(test_unsure_ones_stand_by_themselves),
		TEST(test_all_that_it_did_is_moved),
		TEST(test_one_from_before_returns),
		TEST(test_each_is_one_only),
		TEST(test_a_function_alone_is_not_enough),
		TEST(test_one_that_has_ended),
		TEST(test_what_stands_apart_is_no_rival),
		TEST(test_gaps_in_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
