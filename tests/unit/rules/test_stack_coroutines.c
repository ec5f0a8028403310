// SPDX-License-Identifier: MIT
/* Several stacks of one thread: each keeps its frames while another one runs. */
#include "stack_coroutines_fixture.h"

#include "stack/stack_internal.h"

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
	top_level(t->stack);
}

/* It goes up to a caller that the gap has hidden: no other stack begins. */
static void test_what_unwinds_after_a_gap(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	go(t, A + 0x10, MAIN + 0x85); /* 30-40 */
	call(t, MAIN + 0x90, A);
	gap(t, GAP_OVERFLOW); /* 60 */
	begin(t, A + 0x10);
	go(t, A + 0x20, MAIN + 0xa5); /* 80-90 */
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0xa8);
	assert_finished(t, "main 10-100 inferred-start inferred-end inferred\n"
			   "  a 20-40 cut\n"
			   "    co_switch 30-40 cut\n"
			   "  a 50-90 cut inferred\n"
			   "    [gap: overflow] 60-70\n"
			   "    co_switch 80-90 cut\n");
	assert_no_more(t);
}

/* Nothing tells whether it switches, until it goes to where a call of its own returns. */
static void test_what_may_be_another_stack(void **state)
{
	struct thread *t = *state;

	begin(t, B);
	go(t, B + 0x10, A + 0x25);
	assert_on_top(t, "a", 0);
	go(t, A + 0x30, C + 0x25);
	assert_on_top(t, "c", 0);
	go(t, C + 0x40, A + 0x35);
	assert_on_top(t, "a", 0);
	interrupt(t, A + 0x38);
	assert_finished(t, "b 10-30 inferred-start cut\n"
			   "  co_switch 20-30 cut\n"
			   "a 30-50 inferred-start cut\n"
			   "  co_switch 40-50 cut\n"
			   "c 50-80 inferred-start inferred-end\n"
			   "  co_switch 60-80 inferred-end\n"
			   "    [switched out] 70-80 inferred-end\n");
	assert_next(t, "coroutine 1", "a 70-80 inferred-start inferred-end\n");
	assert_no_more(t);
}

/* It does both, but a stack has waited there before the gap. */
static void test_what_unwinds_and_switches(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x30, C);
	go(t, C + 0x10, MAIN + 0x45);
	go(t, MAIN + 0x50, A); /* 40-50 */
	gap(t, GAP_OVERFLOW);  /* 60 */
	begin(t, A + 0x10);
	go(t, A + 0x20, MAIN + 0x55);
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0x58);
	assert_finished(t, "main 10-110 inferred-start inferred-end inferred\n"
			   "  c 20-40 cut\n"
			   "    co_switch 30-40 cut\n"
			   "  co_switch 50-100\n"
			   "    [switched out] 60-100\n");
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
	start_anew(t);
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

/*
 * Where neither a function begins nor a call returns, nobody waits: code that loads the stack
 * pointer goes on in a frame further out, as __builtin_longjmp() does.
 */
static void test_a_receiver_is_on_the_same_stack(void **state)
{
	struct thread *t = *state;

	begin(t, B);
	call(t, B + 0x10, SWITCH);
	jump(t, SWITCH + 6, A + 0x1c);
	assert_on_top(t, "a", -1);
	ret(t, A + 0x20, MAIN + 0x15);
	interrupt(t, MAIN + 0x18);
	assert_finished(t, "main 10-50 inferred-start inferred-end inferred\n"
			   "  a 10-40 inferred-start inferred\n"
			   "    b 10-30 inferred-start cut by-longjmp\n"
			   "      co_switch 20-30 cut by-longjmp\n");
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

/* The same on one stack: it is a longjmp(). */
static void test_setcontext_of_the_stack_that_runs(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, GETCONTEXT);
	ret(t, GETCONTEXT + 0x10, MAIN + 0x15);
	call(t, MAIN + 0x20, A);
	call(t, A + 0x10, SETCONTEXT);
	ret(t, SETCONTEXT + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-60 inferred-start inferred-end\n"
			   "  getcontext 20-30\n"
			   "  a 40-60 cut\n"
			   "    setcontext 50-60 cut\n");
	assert_no_more(t);
}

/* Ruby's fibers: a new one goes to a caller's function, as what unwinds would, and is none. */
static void test_a_switch_that_only_its_name_tells_of(void **state)
{
	struct thread *t = *state;
	const uint64_t transfer = NOWHERE;

	add_function(t, transfer, "coroutine_transfer", "", 0);
	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, transfer);
	ret(t, transfer + 0x1d, MAIN + 0x40);
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x50, transfer);
	ret(t, transfer + 0x1d, A + 0x15);
	assert_on_top(t, "a", 1);
	assert_finished(t, "main 10-60 inferred-start inferred-end\n"
			   "  a 20-60 inferred-end\n"
			   "    coroutine_transfer 30-60\n"
			   "      [switched out] 40-60\n");
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

/* It has said where it goes on: it is not over. */
static void test_one_that_comes_back_by_getcontext(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	go(t, MAIN + 0x10, A);
	call(t, A + 0x20, GETCONTEXT);
	ret(t, GETCONTEXT + 0x10, A + 0x25);
	call(t, A + 0x30, SETCONTEXT); /* 60 */
	ret(t, SETCONTEXT + 0x20, MAIN + 0x15);
	call(t, MAIN + 0x20, SETCONTEXT); /* 80 */
	ret(t, SETCONTEXT + 0x20, A + 0x25);
	interrupt(t, A + 0x28);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  co_switch 20-70\n"
			   "    [switched out] 30-70\n"
			   "  setcontext 80-100 inferred-end\n"
			   "    [switched out] 90-100 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "a 30-100 inferred-end\n"
		    "  getcontext 40-50\n"
		    "  setcontext 60-90 cut\n"
		    "    [switched out] 70-90 cut\n");
	assert_no_more(t);
}

/* The one before it has ended, and nothing else waits: another has begun in the gap. */
static void test_one_that_began_in_the_gap(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	go(t, MAIN + 0x10, B);	       /* 20-30 */
	call(t, B + 0x20, SETCONTEXT); /* 40 */
	ret(t, SETCONTEXT + 0x20, MAIN + 0x15);
	gap(t, GAP_OVERFLOW); /* 60 */
	begin(t, C + 0x18);
	go(t, C + 0x20, MAIN + 0x25); /* 80-90 */
	interrupt(t, MAIN + 0x30);
	assert_finished(t, "main 10-100 inferred-start inferred-end inferred\n"
			   "  co_switch 20-50\n"
			   "    [switched out] 30-50\n"
			   "  [gap: overflow] 60-70\n"
			   "  [switched out] 70-90\n");
	assert_next(t, "coroutine 1", "b 30-50 cut\n  setcontext 40-50 cut\n");
	assert_next(t, "coroutine 2",
		    "c 70-100 inferred-start inferred-end\n"
		    "  co_switch 80-100 inferred-end\n"
		    "    [switched out] 90-100 inferred-end\n");
	assert_no_more(t);
}

/*
 * main goes on, and returns to a, in whose place c comes. Then the switch is called from where a
 * had called main, which nobody saw begin: it returns where main did, but its caller is another
 * one.
 */
static void test_a_frame_in_another_ones_place(void **state)
{
	struct thread *t = *state;

	begin(t, A);
	call(t, A + 0x20, MAIN);
	go(t, MAIN + 0x10, B);
	go(t, B + 0x10, MAIN + 0x15);
	ret(t, MAIN + 0x20, A + 0x25);
	jump(t, A + 0x28, C);
	go(t, A + 0x20, A + 0x15);
	assert_finished(t, "a 10-80 inferred-start\n"
			   "  main 20-70\n"
			   "    co_switch 30-60\n"
			   "      [switched out] 40-60\n"
			   "c 80-90 by-jump\n"
			   "a 90-100 inferred-end by-jump\n"
			   "  co_switch 90-100 cut\n");
}

/* Coroutines that switch by setjmp() and longjmp(). */
enum { SETJMP = 0xf000, LONGJMP = 0x10000 };

/* The function at `from` calls both, and longjmp() goes to `to`. */
static void longjmp_to(struct thread *t, uint64_t from, uint64_t to)
{
	call(t, from, SETJMP);
	ret(t, SETJMP + 0x20, from + CALL_LEN);
	call(t, from + 0x10, LONGJMP);
	jump(t, LONGJMP + 0x20, to);
}

static void add_longjmp(struct thread *t)
{
	add_function(t, SETJMP, "__sigsetjmp", "", 0);
	add_function(t, LONGJMP, "siglongjmp", "", 0);
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
	case 6:
		longjmp_to(t, ip, random_ip(seed));
		break;
	default:
		go(t, ip, random_ip(seed));
	}
}

/* Any sequence of branches gives well-formed trees. */
static void test_random_switches_give_trees(void **state)
{
	struct thread *t = *state;
	unsigned int seed = 7;
	size_t n_coroutines = 0;

	add_longjmp(t);
	for (int round = 0; round < 1500; round++) {
		start_anew(t);
		if (round % 2)
			t->stack->coroutines.max = (size_t)(1 + round % 5);
		begin(t, MAIN);
		for (int i = rand_r(&seed) % 150; i >= 0; i--)
			do_anything(t, &seed);
		n_coroutines += finish_coroutines(t);
	}
	assert_true(n_coroutines > 1000);
}

/* a() waits to be entered, as QEMU's trampoline does; b() switches. */
static void begin_longjmps(struct thread *t)
{
	add_longjmp(t);
	begin(t, MAIN);
	call(t, MAIN + 0x10, SETJMP);
	ret(t, SETJMP + 0x20, MAIN + 0x15);
	call(t, MAIN + 0x20, SWAPCONTEXT);
	ret(t, SWAPCONTEXT + 0x20, A);
	longjmp_to(t, A + 0x10, MAIN + 0x15);
}

static void test_a_switch_by_longjmp(void **state)
{
	struct thread *t = *state;

	begin_longjmps(t);
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x30, B);
	longjmp_to(t, B + 0x10, A + 0x15);
	assert_on_top(t, "a", 0);
	call(t, A + 0x30, B);
	longjmp_to(t, B + 0x10, B + 0x15);
	assert_on_top(t, "b", 1);
	ret(t, B + 0x40, MAIN + 0x35);
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x30, B);
	longjmp_to(t, B + 0x10, B + 0x15);
	ret(t, B + 0x40, A + 0x35);
	assert_on_top(t, "a", 0);
}

/* longjmp() returns to who waits, as the function of any other switch does. */
static void test_a_longjmp_ends_a_wait(void **state)
{
	struct thread *t = *state;

	begin_longjmps(t);
	longjmp_to(t, MAIN + 0x30, A + 0x15);
	assert_finished(t, "main 10-130 inferred-start inferred-end\n"
			   "  __sigsetjmp 20-30\n"
			   "  swapcontext 40-90 cut by-siglongjmp\n"
			   "    [switched out] 50-90 cut by-siglongjmp\n"
			   "  __sigsetjmp 100-110\n"
			   "  siglongjmp 120-130 inferred-end\n"
			   "    [switched out] 130-130 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "a 50-130 inferred-end\n"
		    "  __sigsetjmp 60-70\n"
		    "  siglongjmp 80-130\n"
		    "    [switched out] 90-130\n");
}

static void test_a_longjmp_to_another_stacks_setjmp(void **state)
{
	struct thread *t = *state;

	begin_longjmps(t);
	interrupt(t, MAIN + 0x30);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  __sigsetjmp 20-30\n"
			   "  swapcontext 40-90 cut by-siglongjmp\n"
			   "    [switched out] 50-90 cut by-siglongjmp\n");
	assert_next(t, "coroutine 1",
		    "a 50-100 inferred-end\n"
		    "  __sigsetjmp 60-70\n"
		    "  siglongjmp 80-100 inferred-end\n"
		    "    [switched out] 90-100 inferred-end\n");
	assert_no_more(t);
}

/* The trace begins when the other stack waits already. */
static void test_a_longjmp_to_a_stack_that_is_not_known(void **state)
{
	struct thread *t = *state;

	add_longjmp(t);
	begin(t, MAIN);
	call(t, MAIN + 0x30, B);
	longjmp_to(t, B + 0x10, B + 0x15);
	assert_on_top(t, "b", 1);
	ret(t, B + 0x40, A + 0x35);
	assert_on_top(t, "a", -1);
	call(t, A + 0x30, B);
	longjmp_to(t, B + 0x10, B + 0x15);
	ret(t, B + 0x40, MAIN + 0x35);
	assert_on_top(t, "main", 0);
}

/* The trace begins when the other stack waits already, in another function. */
static void test_a_longjmp_to_another_functions_setjmp(void **state)
{
	struct thread *t = *state;

	add_longjmp(t);
	begin(t, MAIN);
	call(t, MAIN + 0x30, B);
	longjmp_to(t, B + 0x10, C + 0x25);
	assert_on_top(t, "c", 0);
	ret(t, C + 0x40, A + 0x35);
	call(t, A + 0x30, C);
	longjmp_to(t, C + 0x10, B + 0x15);
	assert_on_top(t, "b", 1);
	ret(t, B + 0x40, MAIN + 0x35);
	assert_on_top(t, "main", 0);
}

/* setjmp() was called in the gap, by the same frame. */
static void test_a_longjmp_within_a_function(void **state)
{
	struct thread *t = *state;

	add_longjmp(t);
	begin(t, B);
	longjmp_to(t, B + 0x20, B + 0x15);
	assert_on_top(t, "b", 0);
	assert_int_equal(finish_coroutines(t), 0);
}

/* Something has come back to its own setjmp(): it hands that on to an outer one. */
static void test_a_longjmp_that_hands_on(void **state)
{
	struct thread *t = *state;

	add_longjmp(t);
	begin(t, A);
	call(t, A + 0x10, SETJMP);
	ret(t, SETJMP + 0x20, A + 0x15);
	call(t, A + 0x20, B);
	call(t, B + 0x10, LONGJMP);
	jump(t, LONGJMP + 0x20, A + 0x15);
	call(t, A + 0x30, LONGJMP);
	jump(t, LONGJMP + 0x20, C + 0x25);
	assert_on_top(t, "c", -1);
	interrupt(t, C + 0x28);
	assert_finished(t, "c 10-90 inferred-start inferred-end inferred\n"
			   "  a 10-80 inferred-start cut by-longjmp\n"
			   "    __sigsetjmp 20-30\n"
			   "    b 40-60 cut by-siglongjmp\n"
			   "      siglongjmp 50-60 cut by-siglongjmp\n"
			   "    siglongjmp 70-80 cut by-longjmp\n");
	assert_no_more(t);
}

/* It is not known any more what called b, and nothing is taken for a call. */
static void test_of_too_many_the_one_that_waits_longest_is_forgotten(void **state)
{
	struct thread *t = *state;
	struct call_tree tree;

	t->stack->coroutines.max = 3;
	begin(t, MAIN);
	go(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	go(t, B + 0x10, MAIN + 0x15);
	for (int i = 0; i < 3; i++) {
		go(t, MAIN + 0x20, C);
		assert_on_top(t, "c", 0);
		go(t, C + 0x10, MAIN + 0x25);
		assert_on_top(t, "main", 0);
	}
	go(t, MAIN + 0x30, B + 0x15);
	assert_on_top(t, "b", 0);
	ret(t, B + 0x20, A + 0x15);
	assert_on_top(t, "a", -1);
	go(t, A + 0x20, MAIN + 0x35);
	assert_on_top(t, "main", 0);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	call_tree__fini(&tree);
	assert_next(t, "coroutine 1",
		    "a 30-160 inferred-end\n"
		    "  b 40-160 inferred-end\n"
		    "    co_switch 50-160 inferred-end\n"
		    "      [switched out] 60-160 inferred-end\n"
		    "c 160-230 inferred-end\n"
		    "  co_switch 170-230 inferred-end\n"
		    "    [switched out] 180-230 inferred-end\n");
	/* The stack from which the trace came to b has taken the track of the next one. */
	assert_next(t, "coroutine 2",
		    "c 80-200 inferred-end\n"
		    "  co_switch 90-200 inferred-end\n"
		    "    [switched out] 100-200 inferred-end\n"
		    "a 200-230 inferred-start inferred-end\n"
		    "  b 200-210 inferred-start\n"
		    "  co_switch 220-230 inferred-end\n"
		    "    [switched out] 230-230 inferred-end\n");
}

/* Coroutine 1 has waited for longer than 2 has, which ran when the gap began. */
static void test_the_one_that_ran_last_is_not_forgotten_first(void **state)
{
	struct thread *t = *state;
	struct call_tree tree;

	t->stack->coroutines.max = 2;
	begin(t, MAIN);
	go(t, MAIN + 0x10, A);
	go(t, A + 0x10, MAIN + 0x15);
	go(t, MAIN + 0x20, B);
	call(t, B + 0x10, C);
	gap(t, GAP_OVERFLOW);
	begin(t, C + 0x20);
	ret(t, C + 0x28, B + 0x15);
	interrupt(t, B + 0x18);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	call_tree__fini(&tree);
	assert_next(t, "coroutine 1",
		    "a 30-100 inferred-end\n"
		    "  co_switch 40-100 inferred-end\n"
		    "    [switched out] 50-100 inferred-end\n"
		    "b 100-120 inferred-start inferred-end\n"
		    "  c 100-110 inferred-start\n");
	assert_next(t, "coroutine 2",
		    "b 70-90 inferred-end\n"
		    "  c 80-90 inferred-end\n"
		    "[gap: overflow] 90-100\n");
}

/* Coroutine 2 is over: its track serves the stack that runs after the gap, and 1 still waits. */
static void test_one_that_is_over_makes_room(void **state)
{
	struct thread *t = *state;

	t->stack->coroutines.max = 2;
	begin(t, MAIN);
	go(t, MAIN + 0x10, A);
	go(t, A + 0x10, MAIN + 0x15);
	go(t, MAIN + 0x20, B);
	call(t, B + 0x10, SETCONTEXT);
	ret(t, SETCONTEXT + 0x20, MAIN + 0x25);
	gap(t, GAP_OVERFLOW);
	begin(t, C);
	interrupt(t, C + 0x10);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  co_switch 20-50\n"
			   "    [switched out] 30-50\n"
			   "  co_switch 60-90\n"
			   "    [switched out] 70-90\n"
			   "[gap: overflow] 100-110\n");
	assert_next(t, "coroutine 1",
		    "a 30-120 inferred-end\n"
		    "  co_switch 40-120 inferred-end\n"
		    "    [switched out] 50-120 inferred-end\n");
	assert_next(t, "coroutine 2",
		    "b 70-90 cut\n"
		    "  setcontext 80-90 cut\n"
		    "c 110-120 inferred-start inferred-end\n");
}

/* The one before on its track has called getcontext(), to which nothing goes back any more. */
static void test_a_forgotten_one_leaves_no_landings(void **state)
{
	struct thread *t = *state;

	t->stack->coroutines.max = 1;
	begin(t, MAIN);
	go(t, MAIN + 0x10, A);
	call(t, A + 0x20, GETCONTEXT);
	ret(t, GETCONTEXT + 0x10, A + 0x25);
	go(t, A + 0x30, MAIN + 0x15);
	go(t, MAIN + 0x20, C);
	assert_on_top(t, "c", 0);
	call(t, C + 0x10, SETCONTEXT);
	ret(t, SETCONTEXT + 0x20, MAIN + 0x25);
	assert_on_top(t, "main", 0);
	/* Nothing can go back to it: it has ended, and does not wait. */
	assert_int_equal(t->stack->coroutines.others.v[0]->state, COROUTINE_OVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_there_and_back),
		TEST(test_other_ways),
		TEST(test_no_switch),
		TEST(test_one_that_was_there),
		TEST(test_what_unwinds_does_not_switch),
		TEST_UNTOLD(test_what_unwinds_after_a_gap),
		TEST_UNTOLD(test_what_may_be_another_stack),
		TEST_UNTOLD(test_what_unwinds_and_switches),
		TEST(test_one_that_ends),
		TEST(test_a_receiver_is_on_the_same_stack),
		TEST(test_getcontext),
		TEST(test_a_switch_that_only_its_name_tells_of),
		TEST(test_setcontext_of_the_stack_that_runs),
		TEST(test_one_that_comes_back_by_getcontext),
		TEST(test_of_too_many_the_one_that_waits_longest_is_forgotten),
		TEST(test_the_one_that_ran_last_is_not_forgotten_first),
		TEST(test_one_that_is_over_makes_room),
		TEST(test_a_forgotten_one_leaves_no_landings),
		TEST(test_gaps),
		TEST(test_one_that_began_in_the_gap),
		TEST(test_a_frame_in_another_ones_place),
		TEST(test_random_switches_give_trees),
		TEST(test_a_switch_by_longjmp),
		TEST(test_a_longjmp_ends_a_wait),
		TEST(test_a_longjmp_to_another_stacks_setjmp),
		TEST(test_a_longjmp_to_a_stack_that_is_not_known),
		TEST_UNTOLD(test_a_longjmp_to_another_functions_setjmp),
		TEST_UNTOLD(test_a_longjmp_within_a_function),
		TEST_UNTOLD(test_a_longjmp_that_hands_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
