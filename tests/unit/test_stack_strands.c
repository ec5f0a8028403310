// SPDX-License-Identifier: MIT
/* Several stacks of one thread: each keeps its frames while another one runs. */
#include "stack_fixture.h"

enum {
	SWITCH = 0xa000,
	SWAPCONTEXT = 0xb000,
	SETCONTEXT = 0xc000,
	GETCONTEXT = 0xd000,
	RESUME = 0xe000,
};

static int start(void **state)
{
	/* mov %rsp, (%rdi); mov %rsi, %rsp; ret */
	static const uint8_t code[] = {0x48, 0x89, 0x27, 0x48, 0x89, 0xf4, 0xc3};
	struct thread *t;

	start_thread(state);
	t = *state;
	add_function(t, SWITCH, "co_switch", code, sizeof(code));
	add_function(t, SWAPCONTEXT, "swapcontext", "", 0);
	add_function(t, SETCONTEXT, "setcontext", "", 0);
	add_function(t, GETCONTEXT, "getcontext", "", 0);
	add_function(t, RESUME, "_Unwind_Resume", code, sizeof(code));
	return 0;
}

/* Calls the switch function at `from`, which goes to `to`. */
static void go(struct thread *t, uint64_t from, uint64_t to)
{
	call(t, from, SWITCH);
	ret(t, SWITCH + 6, to);
}

static void assert_next(struct thread *t, const char *name, const char *expected)
{
	struct call_tree tree;

	assert_int_equal(stack__finish_next(t->stack, &tree), 1);
	assert_int_equal(tree.pid, 42);
	assert_int_equal(tree.tid, 43);
	assert_int_not_equal(tree.strand, 0);
	assert_string_equal(tree.strand_name, name);
	assert_tree(&tree, expected);
	call_tree__fini(&tree);
}

static void assert_no_more(struct thread *t)
{
	struct call_tree tree;

	assert_int_equal(stack__finish_next(t->stack, &tree), 0);
}

static void test_there_and_back(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	go(t, MAIN + 0x10, A);
	assert_on_top(t, "a", 0);
	call(t, A + 0x10, B);
	go(t, B + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x20, C);
	go(t, C + 0x10, B + 0x15);
	assert_on_top(t, "b", 1);
	ret(t, B + 0x20, A + 0x15);
	interrupt(t, A + 0x20);
	assert_finished(t, "main 10-110 inferred-start inferred-end\n"
			   "  co_switch 20-60\n"
			   "    [switched out] 30-60\n"
			   "  c 70-110 inferred-end\n"
			   "    co_switch 80-110 inferred-end\n"
			   "      [switched out] 90-110 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "a 30-110 inferred-end\n"
		    "  b 40-100\n"
		    "    co_switch 50-90\n"
		    "      [switched out] 60-90\n");

	assert_no_more(t);
}

/* By an indirect jump, and by name. */
static void test_other_ways(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, SWITCH);
	jump(t, SWITCH + 6, A);
	call(t, A + 0x10, SWAPCONTEXT);
	enter_kernel(t, SWAPCONTEXT + 0x10);
	begin(t, SWAPCONTEXT + 0x12);
	ret(t, SWAPCONTEXT + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x20, B);
	/* By a tail call. */
	jump(t, B + 0x10, SWITCH);
	jump(t, SWITCH + 6, A + 0x15);
	assert_on_top(t, "a", 0);
	go(t, A + 0x20, MAIN + 0x25);
	assert_on_top(t, "main", 0);
}

/* It failed, or there was nobody else. */
static void test_no_switch(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, SWAPCONTEXT);
	ret(t, SWAPCONTEXT + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-30 inferred-start inferred-end\n"
			   "  swapcontext 20-30\n");
	assert_no_more(t);
}

/* A coroutine that was there before the trace began. */
static void test_one_that_was_there(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	go(t, MAIN + 0x10, B + 0x15);
	assert_on_top(t, "b", 0);
	ret(t, B + 0x20, A + 0x15);
	assert_on_top(t, "a", -1);
	go(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	go(t, MAIN + 0x20, A + 0x25);
	assert_on_top(t, "a", -1);
}

/* Its code looks like a switch's, but it goes up on its own stack. */
static void test_what_unwinds_does_not_switch(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, RESUME);
	ret(t, RESUME + 6, MAIN + 0x80);
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x90, A);
	/* By code alone, too. */
	go(t, A + 0x20, MAIN + 0xa0);
	assert_on_top(t, "main", 0);
	stack__level(t->stack);
}

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
	assert_on_top(t, "b", -2);
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

/* setcontext() does not come back: what called it is over, and another one may begin. */
static void test_one_that_ends(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	for (int i = 0; i < 3; i++) {
		go(t, MAIN + 0x10, A);
		call(t, A + 0x10, SETCONTEXT);
		ret(t, SETCONTEXT + 0x20, MAIN + 0x15);
		assert_on_top(t, "main", 0);
	}
	stack__free(t->stack);
	t->stack = stack__new(42, 43, "worker", t->map);
	t->now = 0;
	begin(t, MAIN);
	go(t, MAIN + 0x10, A);
	call(t, A + 0x10, SETCONTEXT);
	ret(t, SETCONTEXT + 0x20, MAIN + 0x15);
	go(t, MAIN + 0x10, B);
	interrupt(t, B + 0x10);
	assert_finished(t, "main 10-80 inferred-start inferred-end\n"
			   "  co_switch 20-50\n"
			   "    [switched out] 30-50\n"
			   "  co_switch 60-80 inferred-end\n"
			   "    [switched out] 70-80 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "a 30-50 cut\n"
		    "  setcontext 40-50 cut\n"
		    "b 70-80 inferred-end\n");
	assert_no_more(t);
}

/* The other context was saved by getcontext(), not by a switch. */
static void test_getcontext(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, GETCONTEXT);
	ret(t, GETCONTEXT + 0x10, MAIN + 0x15);
	call(t, MAIN + 0x20, A);
	call(t, A + 0x10, SETCONTEXT);
	ret(t, SETCONTEXT + 0x20, B);
	assert_on_top(t, "b", 0);
	call(t, B + 0x10, SETCONTEXT);
	ret(t, SETCONTEXT + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

/* They wait beyond a gap, but not until another snapshot. */
static void test_gaps(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	go(t, MAIN + 0x10, A);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x10);
	go(t, A + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	gap(t, GAP_BETWEEN);
	begin(t, MAIN + 0x10);
	go(t, MAIN + 0x10, A + 0x15);
	assert_on_top(t, "a", 0);
	gap(t, GAP_BETWEEN);
	assert_finished(t, "main 10-120 inferred-start inferred-end inferred\n"
			   "  co_switch 20-70\n"
			   "    [switched out] 30-70\n"
			   "  [gap] 80-90\n"
			   "  co_switch 100-120 inferred-end\n"
			   "    [switched out] 110-120 inferred-end\n"
			   "[gap] 120-120\n");
}

static uint64_t random_ip(unsigned int *seed)
{
	static const uint64_t offsets[] = {0, 0x15, 0x15, 0x25, 6};
	static const uint64_t functions[] = {MAIN,   A,		  B,	      C,	 SWITCH,
					     SWITCH, SWAPCONTEXT, SETCONTEXT, GETCONTEXT};

	return functions[(size_t)rand_r(seed) % 9] + offsets[rand_r(seed) % 5];
}

static void do_anything(struct thread *t, unsigned int *seed)
{
	static const uint64_t from[] = {0x10, 0x20};
	uint64_t ip = MAIN * (1 + (uint64_t)rand_r(seed) % 4) + from[rand_r(seed) % 2];

	switch (rand_r(seed) % 8) {
	case 0:
		call(t, ip, MAIN * (1 + (uint64_t)rand_r(seed) % 4));
		break;
	case 1:
	case 2:
		ret(t, random_ip(seed), random_ip(seed));
		break;
	case 3:
		jump(t, random_ip(seed), random_ip(seed));
		break;
	case 4:
		gap(t, rand_r(seed) % 8 ? GAP_OVERFLOW : GAP_BETWEEN);
		begin(t, random_ip(seed));
		break;
	case 5:
		interrupt(t, ip);
		begin(t, rand_r(seed) % 2 ? HANDLER : ip);
		break;
	default:
		go(t, ip, random_ip(seed));
	}
}

/* Whatever the branches are, what comes out are trees. */
static void test_random_switches_give_trees(void **state)
{
	struct thread *t = *state;
	unsigned int seed = 7;
	size_t n_strands = 0;

	for (int round = 0; round < 1500; round++) {
		struct call_tree tree;

		stack__free(t->stack);
		t->stack = stack__new(42, 43, "worker", t->map);
		t->now = 0;
		begin(t, MAIN);
		for (int i = rand_r(&seed) % 150; i >= 0; i--)
			do_anything(t, &seed);
		assert_int_equal(stack__finish(t->stack, &tree), 0);
		do {
			assert_well_formed(&tree);
			n_strands += tree.strand > 0;
			call_tree__fini(&tree);
		} while (stack__finish_next(t->stack, &tree) == 1);
	}
	assert_true(n_strands > 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_there_and_back),
		TEST(test_other_ways),
		TEST(test_no_switch),
		TEST(test_one_that_was_there),
		TEST(test_what_unwinds_does_not_switch),
		TEST(test_the_last_that_waits_is_taken),
		TEST(test_a_return_tells_which_it_was),
		TEST(test_a_tail_call_before_it_is_told),
		TEST(test_one_that_waited_at_the_same_place),
		TEST(test_one_that_is_told_late),
		TEST(test_one_that_ends),
		TEST(test_getcontext),
		TEST(test_gaps),
		TEST(test_random_switches_give_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
