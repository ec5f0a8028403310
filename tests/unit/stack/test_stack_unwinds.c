// SPDX-License-Identifier: MIT
/* Unwinds that no unwinder's name tells of: where they are said to begin, and by what. */
#include "stack_fixture.h"

#include "stack/stack_internal.h"

enum {
	SETJMP = 0xa000,
	GETCONTEXT = 0xb000,
	LONGJMP = 0xc000,
	THROW = 0xd000,
	BEHIND = MAIN + 0x15, /* the setjmp() that main calls */
};

static int start(void **state)
{
	struct thread *t;

	start_thread(state);
	t = *state;
	add_function(t, SETJMP, "_setjmp", "", 0);
	add_function(t, GETCONTEXT, "getcontext", "", 0);
	add_function(t, LONGJMP, "longjmp", "", 0);
	add_function(t, THROW, "__cxa_throw", "", 0);
	begin(t, MAIN);
	return 0;
}

static void set(struct thread *t, uint64_t function)
{
	call(t, MAIN + 0x10, function);
	ret(t, function + 0x10, BEHIND);
}

/* "FROM WHAT" of each unwind, all of which come to main. */
static void expect(struct thread *t, const char *unwinds)
{
	char text[128] = "";
	struct call_tree tree;

	assert_on_top(t, "main", 0);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	for (size_t i = 0; i < tree.unwinds.n; i++) {
		const struct unwind *unwind = &tree.unwinds.v[i];

		assert_string_equal(call__name(&tree.calls.v[unwind->to]), "main");
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s\n",
			 call__name(&tree.calls.v[unwind->from]), left_by__name(unwind->left_by));
	}
	assert_string_equal(text, unwinds);
	call_tree__fini(&tree);
}

static void test_by_a_function_without_a_name_for_it(void **state)
{
	struct thread *t = *state;

	set(t, SETJMP);
	call(t, MAIN + 0x20, A);
	call(t, A + 0x10, B);
	jump(t, B + 0x20, BEHIND);
	expect(t, "b longjmp\n");
}

static void test_by_its_name(void **state)
{
	struct thread *t = *state;

	set(t, SETJMP);
	call(t, MAIN + 0x20, LONGJMP);
	call(t, LONGJMP + 0x10, B);
	jump(t, B + 0x20, BEHIND);
	expect(t, "longjmp longjmp\n");
}

/* What ends frames has said so itself. */
static void test_a_throw_that_ends_in_a_longjmp(void **state)
{
	struct thread *t = *state;

	set(t, SETJMP);
	call(t, MAIN + 0x20, THROW);
	jump(t, THROW + 0x20, BEHIND);
	expect(t, "__cxa_throw throw\n");
}

/* It ends no frame. */
static void test_in_the_frame_that_takes_it(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, SETJMP);
	ret(t, SETJMP + 0x10, A + 0x15);
	ret(t, A + 0x20, A + 0x15);
	assert_on_top(t, "a", 1);
	ret(t, A + 0x30, MAIN + 0x15);
	expect(t, "");
}

/* setcontext() is no error that is reported: it may be anything. */
static void test_back_to_a_context(void **state)
{
	struct thread *t = *state;

	set(t, GETCONTEXT);
	call(t, MAIN + 0x20, A);
	jump(t, A + 0x20, BEHIND);
	expect(t, "");
}

static void test_two_places_in_one_frame(void **state)
{
	struct thread *t = *state;

	set(t, SETJMP);
	call(t, MAIN + 0x40, SETJMP);
	ret(t, SETJMP + 0x10, MAIN + 0x45);
	call(t, MAIN + 0x50, A);
	jump(t, A + 0x20, MAIN + 0x45);
	call(t, MAIN + 0x50, B);
	jump(t, B + 0x20, BEHIND);
	expect(t, "a longjmp\nb longjmp\n");
}

/* However often they are called: one for each place of a frame that lives. */
static void test_few_places_are_remembered(void **state)
{
	struct thread *t = *state;

	for (int i = 0; i < 100; i++) {
		set(t, SETJMP);
		call(t, MAIN + 0x20, A);
		call(t, A + 0x10, SETJMP);
		ret(t, SETJMP + 0x10, A + 0x15);
		ret(t, A + 0x20, MAIN + 0x25);
	}
	set(t, SETJMP);
	assert_int_equal(t->stack->frames->landings.n, 1);
	expect(t, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_by_a_function_without_a_name_for_it),
		TEST(test_by_its_name),
		TEST(test_a_throw_that_ends_in_a_longjmp),
		TEST(test_in_the_frame_that_takes_it),
		TEST(test_back_to_a_context),
		TEST(test_two_places_in_one_frame),
		TEST(test_few_places_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
