// SPDX-License-Identifier: MIT
/* OCaml 5's effects: fibers, which of them is gone on with, and who waits for it. */
#include "stack_effects_fixture.h"

static void test_a_fiber_that_ends(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	assert_on_top(t, "a", 1);
	assert_int_equal(running_stack(t->stack), 1);
	call(t, A + 0x10, B);
	ret(t, B + 0x20, A + 0x15);
	ret(t, A + 0x20, RETURNS_TO);
	assert_on_top(t, "caml_runstack", 0);
	free_fiber(t);
	assert_on_top(t, "handler", 1);
	assert_int_equal(running_stack(t->stack), 0);
	ret(t, IDENTITY + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  caml_runstack 20-90\n"
			   "    [switched out] 30-70\n"
			   "    caml_free_stack 70-80\n"
			   "  handler 90-100 by-jump\n");
	assert_next(t, "fiber 1",
		    "caml_runstack 30-70\n"
		    "  a 30-60\n"
		    "    b 40-50\n");
	assert_no_more(t);
}

/* The next one has the track of one that is over. */
static void test_one_after_another(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	end_fiber(t, A + 0x20, MAIN + 0x15);
	run(t, MAIN + 0x20, B);
	/* An end that calls more than one function. */
	ret(t, B + 0x20, RETURNS_TO);
	call(t, FREES_AT, FREE_STACK);
	ret(t, FREE_STACK + 0x10, FREES_AT + CALL_LEN);
	call(t, FREES_AT + 8, C);
	assert_on_top(t, "c", 2);
	ret(t, C + 0x10, FREES_AT + 8 + CALL_LEN);
	jump(t, ENDS_AT, IDENTITY);
	ret(t, IDENTITY + 0x10, MAIN + 0x25);
	run(t, MAIN + 0x30, C);
	ret(t, C + 0x20, RETURNS_TO);
	free_fiber(t);
	assert_on_top(t, "handler", 1);
	ret(t, IDENTITY + 0x10, MAIN + 0x35);
	assert_on_top(t, "main", 0);
	finish_own(t);
	assert_next(t, "fiber 1",
		    "caml_runstack 30-50\n"
		    "  a 30-40\n"
		    "caml_runstack 100-120\n"
		    "  b 100-110\n"
		    "caml_runstack 190-210\n"
		    "  c 190-200\n");
	assert_no_more(t);
}

static void test_performs_and_goes_on(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	perform(t, A + 0x10, HANDLER_2);
	assert_on_top(t, "handler_2", 1);
	resume(t, HANDLER_2 + 0x10, A + 0x15);
	assert_on_top(t, "a", 1);
	end_fiber(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-140 inferred-start inferred-end\n"
			   "  caml_runstack 20-50\n"
			   "    [switched out] 30-50\n"
			   "  caml_apply3 50-60 by-jump\n"
			   "  handler_2 60-70 by-jump\n"
			   "  caml_resume 70-110 by-jump\n"
			   "    [switched out] 80-110\n"
			   "  caml_runstack 110-130 by-jump\n"
			   "    caml_free_stack 110-120\n"
			   "  handler 130-140 by-jump\n");
	assert_next(t, "fiber 1",
		    "caml_runstack 30-110\n"
		    "  a 30-100\n"
		    "    caml_perform 40-80\n"
		    "      [switched out] 50-80\n"
		    "    handler 80-90 by-jump\n");
}

/* The one that waited longer: what the function returns to is told by its return alone. */
static void test_which_one_goes_on(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	perform(t, A + 0x10, HANDLER_2);
	ret(t, HANDLER_2 + 0x10, MAIN + 0x15);
	run(t, MAIN + 0x20, B);
	perform(t, B + 0x10, HANDLER_2);
	resume(t, HANDLER_2 + 0x10, A + 0x15);
	assert_on_top(t, "a", 1);
	end_fiber(t, A + 0x20, MAIN + 0x25);
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x30, RESUME);
	jump(t, RESUME + 0x20, IDENTITY);
	ret(t, IDENTITY + 0x10, B + 0x15);
	assert_on_top(t, "b", 1);
	end_fiber(t, B + 0x20, MAIN + 0x35);
	assert_on_top(t, "main", 0);
}

/* Both wait in c, called by others: the wrong one was taken, and its parent is the right one's. */
static void test_which_one_it_was(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	call(t, A + 0x10, C);
	perform(t, C + 0x10, HANDLER_2);
	ret(t, HANDLER_2 + 0x10, MAIN + 0x15);
	run(t, MAIN + 0x20, B);
	call(t, B + 0x10, C);
	perform(t, C + 0x10, HANDLER_2);
	resume(t, HANDLER_2 + 0x10, C + 0x15);
	ret(t, C + 0x20, A + 0x15);
	assert_on_top(t, "a", 1);
	end_fiber(t, A + 0x20, MAIN + 0x25);
	assert_on_top(t, "main", 0);
	/* The other one is where it was. */
	call(t, MAIN + 0x30, RESUME);
	jump(t, RESUME + 0x20, IDENTITY);
	ret(t, IDENTITY + 0x10, C + 0x15);
	ret(t, C + 0x20, B + 0x15);
	end_fiber(t, B + 0x20, MAIN + 0x35);
	assert_on_top(t, "main", 0);
}

static void test_the_outer_handler_takes_it(void **state)
{
	struct thread *t = *state;

	reperform(t);
	jump(t, PERFORM + 0x20, APPLY);
	jump(t, APPLY + 0x10, C);
	assert_on_top(t, "c", 1);
	/* Both are gone on with, the inner one first. */
	resume(t, C + 0x10, B + 0x15);
	assert_on_top(t, "b", 1);
	end_fiber(t, B + 0x20, A + 0x15);
	assert_on_top(t, "a", 1);
	end_fiber(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

static void test_an_exception_ends_a_fiber(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	call(t, B + 0x10, RAISE);
	ret(t, RAISES_AT, CATCHES_AT);
	assert_on_top(t, "caml_runstack", 0);
	free_fiber(t);
	ret(t, IDENTITY + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  caml_runstack 20-90\n"
			   "    [switched out] 30-70\n"
			   "    caml_free_stack 70-80\n"
			   "  handler 90-100 by-jump\n");
	assert_next(t, "fiber 1",
		    "caml_runstack 30-70\n"
		    "  a 30-60 cut by-raise\n"
		    "    b 40-60 cut by-raise\n"
		    "      caml_raise_exn 50-60 cut by-raise\n");
}

/* The function raises, and so does not tell whose: the one that performed last. */
static void test_discontinues(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	perform(t, A + 0x10, HANDLER_2);
	jump(t, HANDLER_2 + 0x10, RESUME);
	jump(t, RESUME + 0x20, C);
	call(t, C + 0x10, RAISE);
	assert_on_top(t, "caml_raise_exn", 3);
	ret(t, RAISES_AT, CATCHES_AT);
	assert_on_top(t, "caml_runstack", 0);
	free_fiber(t);
	ret(t, IDENTITY + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

/* By a jump that has no name. */
static void test_an_exception_without_a_backtrace(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	jump(t, B + 0x20, CATCHES_AT);
	free_fiber(t);
	finish_own(t);
	assert_next(t, "fiber 1",
		    "caml_runstack 30-60\n"
		    "  a 30-50 cut by-raise\n"
		    "    b 40-50 cut by-raise\n");
}

static void discontinue(struct thread *t, uint64_t from, unsigned int coroutine)
{
	call(t, from, RESUME);
	jump(t, RESUME + 0x20, C);
	call(t, C + 0x10, RAISE);
	assert_int_equal(running_stack(t->stack), coroutine);
	ret(t, RAISES_AT, CATCHES_AT);
	free_fiber(t);
	ret(t, IDENTITY + 0x10, from + CALL_LEN);
}

static void test_discontinues_the_one_that_performed_last(void **state)
{
	struct thread *t = *state;

	for (int i = 0; i < 3; i++) {
		run(t, MAIN + 0x10, i ? B : A);
		perform(t, i ? B + 0x10 : A + 0x10, HANDLER_2);
		ret(t, HANDLER_2 + 0x10, MAIN + 0x15);
	}
	discontinue(t, MAIN + 0x20, 3);
	discontinue(t, MAIN + 0x30, 2);
	/* Who resumes waits, too, since later. */
	run(t, MAIN + 0x40, B);
	discontinue(t, B + 0x10, 1);
	assert_on_top(t, "b", 1);
	end_fiber(t, B + 0x20, MAIN + 0x45);
	assert_on_top(t, "main", 0);
	finish_own(t);
	/* The second one's track, from when it was over, is the last one's. */
	assert_next(t, "fiber 1",
		    "caml_runstack 30-420\n"
		    "  a 30-410 cut by-raise\n"
		    "    caml_perform 40-390\n"
		    "      [switched out] 50-390\n"
		    "    c 390-410 by-jump cut by-raise\n"
		    "      caml_raise_exn 400-410 cut by-raise\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_fiber_that_ends),
		TEST(test_one_after_another),
		TEST(test_performs_and_goes_on),
		TEST(test_which_one_goes_on),
		TEST(test_which_one_it_was),
		TEST(test_the_outer_handler_takes_it),
		TEST(test_an_exception_ends_a_fiber),
		TEST(test_an_exception_without_a_backtrace),
		TEST(test_discontinues),
		TEST(test_discontinues_the_one_that_performed_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
