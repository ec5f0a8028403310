// SPDX-License-Identifier: MIT
/* OCaml 5's effects: fibers, which of them is gone on with, and who waits for it. */
#include "stack_fixture.h"

enum {
	RUNSTACK = 0xa000,
	PERFORM = 0xb000,
	REPERFORM = 0xc000,
	RESUME = 0xd000,
	APPLY = 0xe000,
	C_CALL = 0xf000,
	RAISE = 0x10000,
	FREE_STACK = 0x11000,
	/* In RUNSTACK. */
	RUNS_AT = RUNSTACK + 0x20,
	RETURNS_TO = RUNS_AT + CALL_LEN,
	CATCHES_AT = RUNSTACK + 0x52,
	FREES_AT = RUNSTACK + 0x60,
	ENDS_AT = RUNSTACK + 0x70,
	/* In RAISE: pop 48(%r14); ret */
	RAISES_AT = RAISE + 4,
	/* What a resumption goes to, and what a handler's result does. */
	IDENTITY = HANDLER,
};

static int start(void **state)
{
	static const uint8_t raise[] = {0x41, 0x8f, 0x46, 48, 0xc3};
	struct thread *t;

	start_thread(state);
	t = *state;
	add_function(t, RUNSTACK, "caml_runstack", "", 0);
	add_function(t, PERFORM, "caml_perform", "", 0);
	add_function(t, REPERFORM, "caml_reperform", "", 0);
	add_function(t, RESUME, "caml_resume", "", 0);
	add_function(t, APPLY, "caml_apply3", "", 0);
	add_function(t, C_CALL, "caml_c_call", "", 0);
	add_function(t, RAISE, "caml_raise_exn", raise, sizeof(raise));
	add_function(t, FREE_STACK, "caml_free_stack", "", 0);
	begin(t, MAIN);
	return 0;
}

/* A handler around `function`. */
static void run(struct thread *t, uint64_t from, uint64_t function)
{
	call(t, from, RUNSTACK);
	call(t, RUNS_AT, function);
}

/* What is left of a fiber is the parent's: caml_runstack() goes to what handles the result. */
static void free_fiber(struct thread *t)
{
	call(t, FREES_AT, FREE_STACK);
	ret(t, FREE_STACK + 0x10, FREES_AT + CALL_LEN);
	jump(t, ENDS_AT, IDENTITY);
}

static void end_fiber(struct thread *t, uint64_t from, uint64_t back_to)
{
	ret(t, from, RETURNS_TO);
	free_fiber(t);
	ret(t, IDENTITY + 0x10, back_to);
}

/* `handler` is called by caml_apply3(), which goes to it. */
static void perform(struct thread *t, uint64_t from, uint64_t handler)
{
	call(t, from, PERFORM);
	jump(t, PERFORM + 0x20, APPLY);
	jump(t, APPLY + 0x10, handler);
}

/* The running function goes to caml_resume() in its own place. */
static void resume(struct thread *t, uint64_t from, uint64_t to)
{
	jump(t, from, RESUME);
	jump(t, RESUME + 0x20, IDENTITY);
	ret(t, IDENTITY + 0x10, to);
}

static void assert_next(struct thread *t, const char *name, const char *expected)
{
	struct call_tree tree;

	assert_int_equal(stack__finish_next(t->stack, &tree), 1);
	assert_string_equal(tree.strand_name, name);
	assert_tree(&tree, expected);
	call_tree__fini(&tree);
}

static void assert_no_more(struct thread *t)
{
	struct call_tree tree;

	assert_int_equal(stack__finish_next(t->stack, &tree), 0);
}

static void test_a_fiber_that_ends(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	assert_on_top(t, "a", 1);
	call(t, A + 0x10, B);
	ret(t, B + 0x20, A + 0x15);
	ret(t, A + 0x20, RETURNS_TO);
	assert_on_top(t, "caml_runstack", 0);
	free_fiber(t);
	assert_on_top(t, "handler", 1);
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

static void reperform(struct thread *t)
{
	run(t, MAIN + 0x10, A);
	run(t, A + 0x10, B);
	perform(t, B + 0x10, HANDLER_2);
	jump(t, HANDLER_2 + 0x10, REPERFORM);
	jump(t, REPERFORM + 0x10, PERFORM + 0x10);
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

/* Behind a gap the fiber's own frames are not known, but who waits for it is. */
static void test_a_gap_in_a_fiber(void **state)
{
	struct thread *t = *state;

	run(t, MAIN + 0x10, A);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x18);
	end_fiber(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
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
	assert_on_top(t, "main", 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_fiber_that_ends),
		TEST(test_performs_and_goes_on),
		TEST(test_which_one_goes_on),
		TEST(test_which_one_it_was),
		TEST(test_the_outer_handler_takes_it),
		TEST(test_nobody_takes_it),
		TEST(test_nobody_is_there_to_take_it),
		TEST(test_an_exception_ends_a_fiber),
		TEST(test_discontinues),
		TEST(test_resumes_twice),
		TEST(test_fibers_from_before_the_trace),
		TEST(test_a_gap_in_a_fiber),
		TEST(test_a_gap_in_a_resumption),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
