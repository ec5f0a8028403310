// SPDX-License-Identifier: MIT
/* setjmp() and longjmp(): which frame is come back to, and what the calls cut by it say. */
#include "stack_fixture.h"

enum {
	SETJMP = 0xa000,
	SIGSETJMP = 0xb000,
	LONGJMP = 0xc000,
};

static int start(void **state)
{
	struct thread *t;

	start_thread(state);
	t = *state;
	add_function(t, SETJMP, "_setjmp", "", 0);
	add_function(t, SIGSETJMP, "__sigsetjmp", "", 0);
	add_function(t, LONGJMP, "longjmp", "", 0);
	return 0;
}

/* Calls it at `from`, and it returns. */
static void set(struct thread *t, uint64_t from, uint64_t function)
{
	call(t, from, function);
	ret(t, function + 0x20, from + CALL_LEN);
}

/* Cut calls as "name way", one a line, and unwinds as "way: from > to". */
static void assert_cut(struct thread *t, const char *expected)
{
	static const char *const ways[] = {
		[LEFT_BY_UNKNOWN] = "unknown",
		[LEFT_BY_LONGJMP] = "longjmp",
		[LEFT_BY_SIGLONGJMP] = "siglongjmp",
	};
	struct call_tree tree;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_well_formed(&tree);
	assert_unwinds_well_formed(&tree);
	for (size_t i = 0; i < tree.calls.n; i++)
		if (tree.calls.v[i].flags & CALL_CUT_SHORT)
			fprintf(out, "%s %s\n", call__name(&tree.calls.v[i]),
				ways[tree.calls.v[i].left_by]);
	for (size_t i = 0; i < tree.unwinds.n; i++)
		fprintf(out, "%s: %s > %s\n", left_by__name(tree.unwinds.v[i].left_by),
			call__name(&tree.calls.v[tree.unwinds.v[i].from]),
			call__name(&tree.calls.v[tree.unwinds.v[i].to]));
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	call_tree__fini(&tree);
}

static void test_into_a_recursion(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	set(t, A + 0x10, SETJMP);
	call(t, A + 0x20, A);
	call(t, A + 0x20, A);
	call(t, A + 0x30, LONGJMP);
	jump(t, LONGJMP + 0x20, A + 0x15);
	assert_on_top(t, "a", 1);
	ret(t, A + 0x40, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_cut(t, "a longjmp\na longjmp\nlongjmp longjmp\nlongjmp: longjmp > a\n");
}

/* By a RET, which is how some make the jump. */
static void test_the_innermost_that_lives(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	set(t, A + 0x10, SIGSETJMP);
	call(t, A + 0x20, A);
	set(t, A + 0x10, SIGSETJMP);
	call(t, A + 0x20, A);
	set(t, A + 0x10, SIGSETJMP);
	ret(t, A + 0x40, A + 0x25);
	call(t, A + 0x30, B);
	call(t, B + 0x10, LONGJMP);
	ret(t, LONGJMP + 0x20, A + 0x15);
	assert_on_top(t, "a", 2);
	ret(t, A + 0x40, A + 0x25);
	ret(t, A + 0x40, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_cut(t, "b siglongjmp\nlongjmp siglongjmp\nsiglongjmp: longjmp > a\n");
}

/* A frame that has ended is none, although another one stands where it stood. */
static void test_a_frame_that_has_ended(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x20, B);
	set(t, B + 0x10, SETJMP);
	ret(t, B + 0x40, A + 0x25);
	call(t, A + 0x20, C);
	call(t, C + 0x10, B);
	call(t, B + 0x20, LONGJMP);
	jump(t, LONGJMP + 0x20, B + 0x15);
	assert_on_top(t, "b", 3);
}

/* Of two places in one frame, again and again. */
static void test_places_of_one_frame(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	for (int i = 0; i < 100; i++) {
		set(t, A + 0x10, SETJMP);
		set(t, A + 0x20, SIGSETJMP);
		call(t, A + 0x30, LONGJMP);
		jump(t, LONGJMP + 0x20, A + 0x15 + (i % 2 ? 0x10 : 0));
		assert_on_top(t, "a", 1);
	}
	ret(t, A + 0x40, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

static void test_out_of_nested_handlers(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	set(t, A + 0x10, SIGSETJMP);
	call(t, A + 0x20, A);
	interrupt(t, A + 0x50);
	begin(t, HANDLER);
	enter_kernel(t, HANDLER + 0x10);
	begin(t, HANDLER_2);
	call(t, HANDLER_2 + 0x10, LONGJMP);
	enter_kernel(t, LONGJMP + 0x10);
	begin(t, LONGJMP + 0x12);
	jump(t, LONGJMP + 0x20, A + 0x15);
	assert_on_top(t, "a", 1);
	call(t, A + 0x30, B);
	ret(t, B + 0x10, A + 0x35);
	ret(t, A + 0x40, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	assert_cut(t, "a siglongjmp\nhandler siglongjmp\nhandler_2 siglongjmp\n"
		      "longjmp siglongjmp\nsiglongjmp: longjmp > a\n");
}

/* A caller that was found late may call setjmp() as well. */
static void test_a_root(void **state)
{
	struct thread *t = *state;

	begin(t, B + 4);
	ret(t, B + 0x20, A + 0x15);
	set(t, A + 0x20, SETJMP);
	call(t, A + 0x30, A);
	call(t, A + 0x40, LONGJMP);
	jump(t, LONGJMP + 0x20, A + 0x25);
	assert_on_top(t, "a", -1);
	ret(t, A + 0x50, MAIN + 0x15);
	assert_on_top(t, "main", -2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_into_a_recursion),	   TEST(test_the_innermost_that_lives),
		TEST(test_a_frame_that_has_ended), TEST(test_places_of_one_frame),
		TEST(test_out_of_nested_handlers), TEST(test_a_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
