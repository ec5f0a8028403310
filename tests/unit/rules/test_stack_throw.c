// SPDX-License-Identifier: MIT
/* Exceptions: which frame takes them, what they cut short, and the unwinds they leave. */
#include "stack_throw_fixture.h"

static void test_the_innermost_is_not_the_one(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, F);
	call(t, CALL_2, F);
	throw_from(t, CALL_THROUGH);
	jump(t, RAISE + 0x80, PAD_1);
	assert_on_top(t, "f", 1);
	expect(t, PAD_1,
	       "outer 10-80 inferred-start inferred-end\n"
	       "  f 20-80 inferred-end\n"
	       "    f 30-70 cut by-throw\n"
	       "      f 40-70 cut by-throw\n"
	       "        __cxa_throw 50-70 cut by-throw\n"
	       "          _Unwind_RaiseException 60-70 cut by-throw\n",
	       "__cxa_throw@50 f@20 throw 50-70\n");
}

static void test_the_innermost_of_those_that_can(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, F);
	call(t, CALL_1, MIDDLE);
	throw_from(t, MIDDLE + 0x10);
	jump(t, RAISE + 0x80, PAD_1);
	assert_on_top(t, "f", 2);
}

/* libgcc's eh_return may be a RET, and a call that never returns may have its pad behind it. */
static void test_a_return_to_a_pad(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, F);
	throw_from(t, CALL_LAST);
	ret(t, RAISE + 0x80, PAD_1);
	assert_on_top(t, "f", 1);
	expect(t, PAD_1,
	       "outer 10-70 inferred-start inferred-end\n"
	       "  f 20-70 inferred-end\n"
	       "    f 30-60 cut by-throw\n"
	       "      __cxa_throw 40-60 cut by-throw\n"
	       "        _Unwind_RaiseException 50-60 cut by-throw\n",
	       "__cxa_throw@40 f@20 throw 40-60\n");
}

/* What a clean-up has interrupted is the same exception still. */
static void test_a_clean_up_on_the_way(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	throw_from(t, CALL_1);
	jump(t, RAISE + 0x80, PAD_1);
	call(t, PAD_1 + 4, RESUME);
	jump(t, RESUME + 0x80, OUTER_PAD);
	assert_on_top(t, "outer", 0);
	expect(t, OUTER_PAD,
	       "outer 10-80 inferred-start inferred-end\n"
	       "  f 20-70 cut by-throw\n"
	       "    __cxa_throw 30-50 cut by-throw\n"
	       "      _Unwind_RaiseException 40-50 cut by-throw\n"
	       "    _Unwind_Resume 60-70 cut by-throw\n",
	       "__cxa_throw@30 outer@10 throw 30-70\n");
}

/* It throws and catches on its own, meanwhile. */
static void test_a_clean_up_that_throws(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	throw_from(t, CALL_1);
	jump(t, RAISE + 0x80, PAD_1);
	call(t, PAD_1 + 4, F);
	throw_from(t, CALL_2);
	jump(t, RAISE + 0x80, PAD_2);
	ret(t, PAD_2 + 4, PAD_1 + 9);
	call(t, PAD_1 + 12, RESUME);
	jump(t, RESUME + 0x80, OUTER_PAD);
	expect(t, OUTER_PAD,
	       "outer 10-130 inferred-start inferred-end\n"
	       "  f 20-120 cut by-throw\n"
	       "    __cxa_throw 30-50 cut by-throw\n"
	       "      _Unwind_RaiseException 40-50 cut by-throw\n"
	       "    f 60-100\n"
	       "      __cxa_throw 70-90 cut by-throw\n"
	       "        _Unwind_RaiseException 80-90 cut by-throw\n"
	       "    _Unwind_Resume 110-120 cut by-throw\n",
	       "__cxa_throw@30 outer@10 throw 30-120\n"
	       "__cxa_throw@70 f@60 throw 70-90\n");
}

static void test_a_panic(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, PANIC);
	call(t, PANIC + 0x10, RAISE);
	jump(t, RAISE + 0x80, PAD_1);
	call(t, PAD_1 + 4, RESUME);
	jump(t, RESUME + 0x80, OUTER_PAD);
	expect(t, OUTER_PAD,
	       "outer 10-80 inferred-start inferred-end\n"
	       "  f 20-70 cut by-panic\n"
	       "    rust_panic 30-50 cut by-panic\n"
	       "      _Unwind_RaiseException 40-50 cut by-panic\n"
	       "    _Unwind_Resume 60-70 cut by-panic\n",
	       "rust_panic@30 outer@10 panic 30-70\n");
}

/* It began further out than where its first clean-up was. */
static void test_a_clean_up_in_what_began_it(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, PANIC);
	call(t, PANIC + 0x10, F);
	call(t, CALL_1, RAISE);
	jump(t, RAISE + 0x80, PAD_1);
	call(t, PAD_1 + 4, RESUME);
	jump(t, RESUME + 0x80, OUTER_PAD);
	expect(t, OUTER_PAD,
	       "outer 10-80 inferred-start inferred-end\n"
	       "  rust_panic 20-70 cut by-panic\n"
	       "    f 30-70 cut by-panic\n"
	       "      _Unwind_RaiseException 40-50 cut by-throw\n"
	       "      _Unwind_Resume 60-70 cut by-panic\n",
	       "rust_panic@20 outer@10 panic 20-70\n");
}

/* pthread_exit() and pthread_cancel(): the last frame is one that has called setjmp(). */
static void test_a_forced_unwinding(void **state)
{
	struct thread *t = *state;

	begin(t, MIDDLE + 4);
	call(t, MIDDLE + 0x10, SETJMP);
	ret(t, SETJMP + 8, MIDDLE + 0x10 + CALL_LEN);
	call(t, MIDDLE + 0x20, F);
	throw_from(t, CALL_1);
	jump(t, RAISE + 0x80, PAD_1);
	call(t, PAD_1 + 4, RESUME);
	call(t, RESUME + 0x10, LONGJMP);
	jump(t, LONGJMP + 8, MIDDLE + 0x10 + CALL_LEN);
	expect(t, MIDDLE + 0x18,
	       "middle 10-110 inferred-start inferred-end\n"
	       "  _setjmp 20-30\n"
	       "  f 40-100 cut by-throw\n"
	       "    __cxa_throw 50-70 cut by-throw\n"
	       "      _Unwind_RaiseException 60-70 cut by-throw\n"
	       "    _Unwind_Resume 80-100 cut by-throw\n"
	       "      longjmp 90-100 cut by-throw\n",
	       "__cxa_throw@50 middle@10 throw 50-100\n");
}

/* The trace began after the call of what takes it: no frame that it has can be meant. */
static void test_beyond_all_that_is_known(void **state)
{
	struct thread *t = *state;

	begin(t, F + 4);
	call(t, CALL_THROUGH, F);
	throw_from(t, CALL_2);
	jump(t, RAISE + 0x80, PAD_1);
	assert_on_top(t, "f", -1);
	ret(t, PAD_1 + 4, OUTER_CALL + CALL_LEN);
	expect(t, OUTER + 0x20,
	       "outer 10-70 inferred-start inferred-end inferred\n"
	       "  f 10-60 inferred-start inferred\n"
	       "    f 10-50 inferred-start cut by-throw\n"
	       "      f 20-50 cut by-throw\n"
	       "        __cxa_throw 30-50 cut by-throw\n"
	       "          _Unwind_RaiseException 40-50 cut by-throw\n",
	       "__cxa_throw@30 f@10 throw 30-50\n");
}

/* What is known of an unwind's calls stays true when callers are found later, and after a gap. */
static void test_unwinds_behind_late_callers(void **state)
{
	struct thread *t = *state;

	begin(t, F + 4);
	ret(t, F + 0x50, CALL_THROUGH + CALL_LEN);
	throw_from(t, CALL_1);
	jump(t, RAISE + 0x80, PAD_1);
	ret(t, PAD_1 + 4, OUTER_CALL + CALL_LEN);
	gap(t, GAP_OVERFLOW);
	begin(t, MIDDLE + 4);
	ret(t, MIDDLE + 8, CALL_2 + CALL_LEN);
	throw_from(t, CALL_2);
	jump(t, RAISE + 0x80, PAD_2);
	expect(t, PAD_2,
	       "outer 10-70 inferred-start inferred-end\n"
	       "  f 10-60 inferred-start\n"
	       "    f 10-20 inferred-start\n"
	       "    __cxa_throw 30-50 cut by-throw\n"
	       "      _Unwind_RaiseException 40-50 cut by-throw\n"
	       "[gap: overflow] 70-80\n"
	       "f 80-130 inferred-start inferred-end\n"
	       "  middle 80-90 inferred-start\n"
	       "  __cxa_throw 100-120 cut by-throw\n"
	       "    _Unwind_RaiseException 110-120 cut by-throw\n",
	       "__cxa_throw@30 f@10 throw 30-50\n"
	       "__cxa_throw@100 f@80 throw 100-120\n");
}

/* The handler of a signal throws into what was interrupted, at any instruction. */
static void test_out_of_a_signal_handler(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	interrupt(t, F + 0x60);
	begin(t, ON_SIGNAL);
	throw_from(t, ON_SIGNAL + 0x10);
	jump(t, RAISE + 0x80, PAD_1);
	assert_on_top(t, "f", 1);
}

/* Without a symbol for it, the other part of a function is another one. */
static void test_a_jump_within_a_function_in_two_parts(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, MIDDLE);
	call(t, MIDDLE + 0x10, F);
	jump(t, DIRECT_JUMP, OUTER_PAD);
	assert_on_top(t, "outer", 3);
}

/* Exceptions go to callers: what takes this one has run below all that is known. */
static void test_into_code_that_no_table_describes(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	throw_from(t, OUTER_CALL);
	jump(t, RAISE + 0x80, MIDDLE + 0x80);
	assert_on_top(t, "middle", -1);
	expect(t, MIDDLE + 0x90,
	       "middle 10-50 inferred-start inferred-end inferred\n"
	       "  outer 10-40 inferred-start cut by-throw\n"
	       "    __cxa_throw 20-40 cut by-throw\n"
	       "      _Unwind_RaiseException 30-40 cut by-throw\n",
	       "__cxa_throw@20 middle@10 throw 20-40\n");
}

/* A frame that can be meant, of a function without a table. */
static void test_a_caller_without_a_table(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, MIDDLE);
	throw_from(t, MIDDLE + 0x10);
	jump(t, RAISE + 0x80, MIDDLE + 0x80);
	expect(t, MIDDLE + 0x90,
	       "outer 10-60 inferred-start inferred-end\n"
	       "  middle 20-60 inferred-end\n"
	       "    __cxa_throw 30-50 cut by-throw\n"
	       "      _Unwind_RaiseException 40-50 cut by-throw\n",
	       "__cxa_throw@30 middle@20 throw 30-50\n");
}

/* An unwinder without a name, whose code may switch: it does not, if it goes to a landing pad. */
static void test_a_pad_is_on_the_same_stack(void **state)
{
	/* mov %rsi, %rsp; ret */
	static const uint8_t code[] = {0x48, 0x89, 0xf4, 0xc3};
	struct thread *t = *state;

	add_function(t, 0xa000, "jumpto", code, sizeof(code));
	begin(t, MIDDLE);
	call(t, MIDDLE + 0x10, 0xa000);
	ret(t, 0xa003, PAD_1);
	assert_on_top(t, "f", -1);
	ret(t, F + 0xf0, OUTER_CALL + CALL_LEN);
	assert_on_top(t, "outer", -2);
	interrupt(t, OUTER_CALL + 0x10);
	assert_finished(t, "outer 10-50 inferred-start inferred-end inferred\n"
			   "  f 10-40 inferred-start inferred\n"
			   "    middle 10-30 inferred-start cut by-throw\n"
			   "      jumpto 20-30 cut by-throw\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_innermost_is_not_the_one),
		TEST(test_the_innermost_of_those_that_can),
		TEST(test_a_return_to_a_pad),
		TEST(test_a_clean_up_on_the_way),
		TEST(test_a_clean_up_that_throws),
		TEST(test_a_panic),
		TEST(test_a_clean_up_in_what_began_it),
		TEST(test_a_forced_unwinding),
		TEST(test_beyond_all_that_is_known),
		TEST(test_unwinds_behind_late_callers),
		TEST(test_out_of_a_signal_handler),
		TEST(test_a_jump_within_a_function_in_two_parts),
		TEST(test_into_code_that_no_table_describes),
		TEST(test_a_caller_without_a_table),
		TEST(test_a_pad_is_on_the_same_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
