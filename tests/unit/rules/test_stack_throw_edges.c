// SPDX-License-Identifier: MIT
/* What lies between a frame from before a gap and what unwinds behind it: from other throws. */
#include "stack_throw_fixture.h"

/* outer calls f, which throws out of its call through `thrower`, and takes it. */
static void throw_through(struct thread *t, uint64_t thrower)
{
	call(t, CALL_1, thrower);
	call(t, thrower + 0x10, RAISE);
	jump(t, RAISE + 0x80, PAD_1);
}

/* The next is thrown in a gap. */
static void throw_in_a_gap(struct thread *t)
{
	gap(t, GAP_OVERFLOW);
	begin(t, RAISE + 0x10);
	jump(t, RAISE + 0x80, PAD_1);
}

static void test_it_is_reached_as_before(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	throw_through(t, THROW);
	throw_in_a_gap(t);
	expect(t, PAD_1 + 8,
	       "outer 10-90 inferred-start inferred-end inferred\n"
	       "  f 20-90 inferred-end inferred\n"
	       "    __cxa_throw 30-50 cut by-throw\n"
	       "      _Unwind_RaiseException 40-50 cut by-throw\n"
	       "    [gap: overflow] 60-70\n"
	       "    __cxa_throw 70-80 inferred-start cut inferred by-throw\n"
	       "      _Unwind_RaiseException 70-80 inferred-start cut by-throw\n",
	       "__cxa_throw@30 f@20 throw 30-50\n"
	       "_Unwind_RaiseException@70 f@20 throw 70-80\n");
}

static void test_nothing_lies_between_where_it_was_called_directly(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	throw_through(t, THROW);
	call(t, CALL_1, RAISE);
	jump(t, RAISE + 0x80, PAD_1);
	throw_in_a_gap(t);
	expect(t, PAD_1 + 8,
	       "outer 10-110 inferred-start inferred-end inferred\n"
	       "  f 20-110 inferred-end inferred\n"
	       "    __cxa_throw 30-50 cut by-throw\n"
	       "      _Unwind_RaiseException 40-50 cut by-throw\n"
	       "    _Unwind_RaiseException 60-70 cut by-throw\n"
	       "    [gap: overflow] 80-90\n"
	       "    _Unwind_RaiseException 90-100 inferred-start cut by-throw\n",
	       "__cxa_throw@30 f@20 throw 30-50\n"
	       "_Unwind_RaiseException@60 f@20 throw 60-70\n"
	       "_Unwind_RaiseException@90 f@20 throw 90-100\n");
}

static void test_of_two_ways_neither_is_taken(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	throw_through(t, THROW);
	throw_through(t, PANIC);
	throw_in_a_gap(t);
	expect(t, PAD_1 + 8,
	       "outer 10-120 inferred-start inferred-end inferred\n"
	       "  f 20-120 inferred-end inferred\n"
	       "    __cxa_throw 30-50 cut by-throw\n"
	       "      _Unwind_RaiseException 40-50 cut by-throw\n"
	       "    rust_panic 60-80 cut by-panic\n"
	       "      _Unwind_RaiseException 70-80 cut by-panic\n"
	       "    [gap: overflow] 90-100\n"
	       "    _Unwind_RaiseException 100-110 inferred-start cut by-throw\n",
	       "__cxa_throw@30 f@20 throw 30-50\n"
	       "rust_panic@60 f@20 panic 60-80\n"
	       "_Unwind_RaiseException@100 f@20 throw 100-110\n");
}

/* What threw then had jumped there. */
static void test_who_jumped_on_had_been_called_as_well(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, THROW);
	call(t, THROW + 0x10, RAISE);
	jump(t, RAISE + 0x20, RESUME);
	jump(t, RESUME + 0x80, PAD_1);
	throw_in_a_gap(t);
	expect(t, PAD_1 + 8,
	       "outer 10-100 inferred-start inferred-end inferred\n"
	       "  f 20-100 inferred-end inferred\n"
	       "    __cxa_throw 30-60 cut by-throw\n"
	       "      _Unwind_RaiseException 40-50\n"
	       "      _Unwind_Resume 50-60 by-jump cut by-throw\n"
	       "    [gap: overflow] 70-80\n"
	       "    __cxa_throw 80-90 inferred-start cut inferred by-throw\n"
	       "      _Unwind_RaiseException 80-90 inferred-start cut by-throw\n",
	       "__cxa_throw@30 f@20 throw 30-60\n"
	       "_Unwind_RaiseException@80 f@20 throw 80-90\n");
}

/* What returns has not been left: it tells nothing. */
static void test_returns_are_no_throws(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, THROW);
	call(t, THROW + 0x10, RAISE);
	ret(t, RAISE + 0x20, THROW + 0x15);
	ret(t, THROW + 0x20, CALL_1 + CALL_LEN);
	throw_in_a_gap(t);
	expect(t, PAD_1 + 8,
	       "outer 10-100 inferred-start inferred-end inferred\n"
	       "  f 20-100 inferred-end inferred\n"
	       "    __cxa_throw 30-60\n"
	       "      _Unwind_RaiseException 40-50\n"
	       "    [gap: overflow] 70-80\n"
	       "    _Unwind_RaiseException 80-90 inferred-start cut by-throw\n",
	       "_Unwind_RaiseException@80 f@20 throw 80-90\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_it_is_reached_as_before),
		TEST(test_nothing_lies_between_where_it_was_called_directly),
		TEST(test_of_two_ways_neither_is_taken),
		TEST(test_who_jumped_on_had_been_called_as_well),
		TEST(test_returns_are_no_throws),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
