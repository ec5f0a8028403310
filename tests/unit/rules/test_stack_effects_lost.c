// SPDX-License-Identifier: MIT
/* OCaml 5's effects where something is missing: a handler, what was before the trace, a gap. */
#include "stack_effects_fixture.h"

#include "stack/stack_internal.h"

static void test_nobody_takes_it(void **state)
{
	struct thread *t = *state;

	reperform(t);
	jump(t, PERFORM + 0x20, APPLY);
	jump(t, APPLY + 0x10, C);
	jump(t, C + 0x10, REPERFORM);
	jump(t, REPERFORM + 0x10, PERFORM + 0x10);
	/* On the stack that performed first. */
	jump(t, PERFORM + 0x30, C_CALL);
	assert_on_top(t, "caml_c_call", 2);
	call(t, C_CALL + 0x10, RAISE);
	ret(t, RAISES_AT, CATCHES_AT);
	free_fiber(t);
	ret(t, IDENTITY + 0x10, A + 0x15);
	assert_on_top(t, "a", 1);
	end_fiber(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

static void test_nobody_is_there_to_take_it(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, PERFORM);
	jump(t, PERFORM + 0x30, C_CALL);
	assert_on_top(t, "caml_c_call", 2);
	ret(t, C_CALL + 0x10, A + 0x15);
	assert_on_top(t, "a", 1);
	assert_finished(t, "main 10-50 inferred-start inferred-end\n"
			   "  a 20-50 inferred-end\n"
			   "    caml_perform 30-40\n"
			   "    caml_c_call 40-50 by-jump\n");
	assert_no_more(t);
}

/* It is not the one's that performed before, which is kept. */
static void test_nobody_takes_another(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	perform(t, A + 0x10, HANDLER_2);
	call(t, HANDLER_2 + 0x10, PERFORM);
	jump(t, PERFORM + 0x30, C_CALL);
	assert_on_top(t, "caml_c_call", 2);
	ret(t, C_CALL + 0x10, HANDLER_2 + 0x15);
	assert_on_top(t, "handler_2", 1);
}

/* A second resumption of the same one raises: caml_resume() goes to nobody. */
static void test_resumes_twice(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, RESUME);
	jump(t, RESUME + 0x20, C_CALL);
	assert_on_top(t, "caml_c_call", 1);
	call(t, C_CALL + 0x10, A);
	ret(t, A + 0x10, C_CALL + 0x15);
	ret(t, C_CALL + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

/* main is a function of a fiber here, whose parent is not known, and neither is who else waits. */
static void test_fibers_from_before_the_trace(void **state)
{
	struct thread *t = *state;

	perform(t, MAIN + 0x10, HANDLER_2);
	assert_on_top(t, "handler_2", 0);
	resume(t, HANDLER_2 + 0x10, B + 0x15);
	assert_on_top(t, "b", -1);
	perform(t, B + 0x20, HANDLER_2);
	resume(t, HANDLER_2 + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	/* Its end is the handler's stack's. */
	ret(t, MAIN + 0x20, RETURNS_TO);
	free_fiber(t);
	assert_on_top(t, "handler", 0);
	ret(t, IDENTITY + 0x10, C + 0x15);
	assert_on_top(t, "c", -1);
}

/* Nobody is known that waits for it. */
static void test_the_end_of_a_fiber_from_before_the_trace(void **state)
{
	struct thread *t = *state;

	ret(t, MAIN + 0x10, RETURNS_TO);
	free_fiber(t);
	ret(t, IDENTITY + 0x10, A + 0x15);
	assert_on_top(t, "a", -2);
	assert_finished(t, "a 10-60 inferred-start inferred-end\n"
			   "  caml_runstack 10-50 inferred-start\n"
			   "    main 10-20 inferred-start\n"
			   "    caml_free_stack 30-40\n"
			   "  handler 50-60 by-jump\n");
	assert_no_more(t);
}

/* main is a fiber's, whose handler leaves it to one further out: that waits for both. */
static void test_handlers_from_before_the_trace(void **state)
{
	struct thread *t = *state;

	perform(t, MAIN + 0x10, HANDLER_2);
	assert_int_equal(running_stack(t->stack), 1);
	jump(t, HANDLER_2 + 0x10, REPERFORM);
	jump(t, REPERFORM + 0x10, PERFORM + 0x10);
	jump(t, PERFORM + 0x20, APPLY);
	jump(t, APPLY + 0x10, C);
	assert_int_equal(running_stack(t->stack), 2);
	resume(t, C + 0x10, MAIN + 0x15);
	assert_int_equal(running_stack(t->stack), 0);
	ret(t, MAIN + 0x20, RETURNS_TO);
	free_fiber(t);
	assert_int_equal(running_stack(t->stack), 1);
	ret(t, IDENTITY + 0x10, RETURNS_TO);
	free_fiber(t);
	assert_int_equal(running_stack(t->stack), 2);
}

/* Of what it hands on nothing is known. */
static void test_a_handler_from_before_the_trace(void **state)
{
	struct thread *t = *state;

	jump(t, MAIN + 0x10, REPERFORM);
	jump(t, REPERFORM + 0x10, PERFORM + 0x10);
	jump(t, PERFORM + 0x20, APPLY);
	assert_on_top(t, "caml_apply3", 0);
	assert_int_equal(running_stack(t->stack), 1);
	/* Who raises where nobody takes it is not known, either. */
	jump(t, APPLY + 0x10, REPERFORM);
	jump(t, REPERFORM + 0x10, PERFORM + 0x10);
	jump(t, PERFORM + 0x30, C_CALL);
	assert_on_top(t, "caml_c_call", 0);
}

/* More than are told apart: the one that has been kept longest is forgotten. */
static void test_too_many_fibers(void **state)
{
	struct thread *t = *state;

	t->stack->coroutines.max = 3;
	for (int i = 0; i < 3; i++) {
		run(t, MAIN + 0x10, A);
		perform(t, A + 0x10, HANDLER_2);
		ret(t, HANDLER_2 + 0x10, MAIN + 0x15);
	}
	run(t, MAIN + 0x10, B);
	assert_on_top(t, "b", 1);
	assert_int_equal(running_stack(t->stack), 4);
	perform(t, B + 0x10, HANDLER_2);
	assert_on_top(t, "handler_2", 1);
	assert_int_equal(running_stack(t->stack), 0);
	resume(t, HANDLER_2 + 0x10, B + 0x15);
	assert_on_top(t, "b", 1);
	assert_int_equal(running_stack(t->stack), 4);
}

/*
 * B's fiber has resumed another fiber than the kept one of A, and there is no track for the other
 * one but that of B's, which waits for it.
 */
static void test_the_one_that_resumes_is_forgotten(void **state)
{
	struct thread *t = *state;

	t->stack->coroutines.max = 2;
	run(t, MAIN + 0x10, A);
	perform(t, A + 0x10, HANDLER_2);
	ret(t, HANDLER_2 + 0x10, MAIN + 0x15);
	run(t, MAIN + 0x10, B);
	resume(t, B + 0x10, A + 0x15);
	assert_int_equal(running_stack(t->stack), 1);
	call(t, A + 0x20, B);
	ret(t, B + 0x10, A + 0x25);
	ret(t, A + 0x30, C + 0x15);
	assert_on_top(t, "c", -1);
	assert_int_equal(running_stack(t->stack), 3);
	assert_int_equal(t->stack->coroutines.running->number, 2);
	/* It is not known who waits for it: not the fiber itself, which would be an endless chain.
	 */
	assert_null(t->stack->coroutines.running->parent);
	perform(t, C + 0x20, HANDLER_2);
	assert_on_top(t, "handler_2", 0);
	assert_true(running_stack(t->stack) != 3);
	resume(t, HANDLER_2 + 0x10, C + 0x25);
	assert_on_top(t, "c", -1);
	assert_int_equal(running_stack(t->stack), 3);
}

static void test_calls_of_any_length(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	branch(t, BRANCH_CALL, A + 0x10, PERFORM, 0);
	jump(t, PERFORM + 0x20, APPLY);
	jump(t, APPLY + 0x10, HANDLER_2);
	resume(t, HANDLER_2 + 0x10, A + 0x15);
	assert_on_top(t, "a", 1);
	assert_int_equal(running_stack(t->stack), 1);
}

/* Behind a gap the fiber's own frames are not known, but who waits for it is. */
static void test_a_gap_in_a_fiber(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	gap(t, GAP_OVERFLOW);
	begin(t, B + 0x18);
	ret(t, B + 0x20, A + 0x15);
	call(t, A + 0x20, C);
	assert_on_top(t, "c", 0);
	ret(t, C + 0x10, A + 0x25);
	end_fiber(t, A + 0x30, MAIN + 0x15);
	/* From where the segment began on that stack, in caml_runstack(). */
	assert_on_top(t, "main", -1);
	finish_own(t);
	assert_next(t, "fiber 1",
		    "caml_runstack 30-110 inferred\n"
		    "  a 30-100 inferred\n"
		    "    b 40-70 inferred\n"
		    "      [gap: overflow] 50-60\n"
		    "    c 80-90\n");
}

/* What looks like a resumption was broken off. */
static void test_a_gap_in_a_resumption(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	perform(t, A + 0x10, HANDLER_2);
	jump(t, HANDLER_2 + 0x10, RESUME);
	jump(t, RESUME + 0x20, IDENTITY);
	gap(t, GAP_OVERFLOW);
	begin(t, MAIN + 0x30);
	call(t, MAIN + 0x30, B);
	ret(t, B + 0x10, MAIN + 0x35);
	assert_finished(t, "main 10-120 inferred-start inferred-end inferred\n"
			   "  caml_runstack 20-50\n"
			   "    [switched out] 30-50\n"
			   "  caml_apply3 50-60 by-jump\n"
			   "  handler_2 60-70 by-jump\n"
			   "  caml_resume 70-90 inferred-end by-jump\n"
			   "  [gap: overflow] 90-100\n"
			   "  b 110-120\n");
}

static uint64_t random_function(unsigned int *seed)
{
	return MAIN * (1 + (uint64_t)rand_r(seed) % 6);
}

static void do_anything(struct thread *t, unsigned int *seed)
{
	uint64_t at = random_function(seed) + 0x10, to = random_function(seed);
	uint64_t back_to = to + 0x15 + 0x10 * (uint64_t)(rand_r(seed) % 2);

	switch (rand_r(seed) % 9) {
	case 0:
	case 1:
		run(t, at, to);
		break;
	case 2:
		perform(t, at, to);
		break;
	case 3:
		jump(t, at, REPERFORM);
		jump(t, REPERFORM + 0x10, PERFORM + 0x10);
		break;
	case 4:
	case 5:
		resume(t, at, back_to);
		break;
	case 6:
		end_fiber(t, at, back_to);
		break;
	case 7:
		ret(t, at, back_to);
		break;
	default:
		gap(t, GAP_OVERFLOW);
		begin(t, to);
	}
}

/* Any sequence of branches gives well-formed trees, also if fibers are forgotten. */
static void test_random_effects_give_trees(void **state)
{
	struct thread *t = *state;
	unsigned int seed = 3;
	size_t n_fibers = 0;

	for (int round = 0; round < 1500; round++) {
		start_anew(t);
		if (round % 2)
			t->stack->coroutines.max = (size_t)(1 + round % 5);
		begin(t, MAIN);
		for (int i = rand_r(&seed) % 60; i >= 0; i--)
			do_anything(t, &seed);
		n_fibers += finish_coroutines(t);
	}
	assert_true(n_fibers > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nobody_takes_it),
		TEST(test_nobody_is_there_to_take_it),
		TEST(test_nobody_takes_another),
		TEST(test_resumes_twice),
		TEST(test_fibers_from_before_the_trace),
		TEST(test_the_end_of_a_fiber_from_before_the_trace),
		TEST(test_handlers_from_before_the_trace),
		TEST(test_a_handler_from_before_the_trace),
		TEST(test_too_many_fibers),
		TEST(test_the_one_that_resumes_is_forgotten),
		TEST(test_random_effects_give_trees),
		TEST(test_calls_of_any_length),
		TEST(test_a_gap_in_a_fiber),
		TEST(test_a_gap_in_a_resumption),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
