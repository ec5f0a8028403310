// SPDX-License-Identifier: MIT
/* Exceptions on both sides of a gap: which of the frames from before it takes them. */
#include "stack_throw_fixture.h"

/* Thrown behind a gap, out of frames from before it: it lands in the innermost f of those. */
static void test_across_a_gap(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, F);
	call(t, CALL_1, MIDDLE);
	gap(t, GAP_OVERFLOW);
	begin(t, THROW + 4);
	call(t, THROW + 0x10, RAISE);
	jump(t, RAISE + 0x80, PAD_1);
	expect(t, PAD_1 + 8,
	       "outer 10-90 inferred-start inferred-end inferred\n"
	       "  f 20-90 inferred-end inferred\n"
	       "    f 30-90 inferred-end inferred\n"
	       "      middle 40-50 inferred-end\n"
	       "      [gap: overflow] 50-60\n"
	       "      __cxa_throw 60-80 inferred-start cut by-throw\n"
	       "        _Unwind_RaiseException 70-80 cut by-throw\n",
	       "__cxa_throw@60 f@30 throw 60-80\n");
}

/* The innermost f from before the gap has called where nothing lands: it is not the one. */
static void test_the_pad_is_for_a_call_from_before_the_gap(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, F);
	call(t, CALL_2, F);
	throw_from(t, CALL_THROUGH);
	call(t, RAISE + 0x20, MIDDLE);
	gap(t, GAP_OVERFLOW);
	begin(t, MIDDLE + 0x10);
	ret(t, MIDDLE + 0x20, RAISE + 0x25);
	jump(t, RAISE + 0x80, PAD_1);
	expect(t, PAD_1 + 8,
	       "outer 10-120 inferred-start inferred-end inferred\n"
	       "  f 20-120 inferred-end inferred\n"
	       "    f 30-110 inferred-end inferred\n"
	       "      f 40-110 inferred-end inferred\n"
	       "        __cxa_throw 50-110 inferred-end inferred\n"
	       "          _Unwind_RaiseException 60-110 cut inferred by-throw\n"
	       "            middle 70-100 inferred\n"
	       "              [gap: overflow] 80-90\n",
	       "_Unwind_RaiseException@60 f@20 throw 90-110\n");
}

/* The same of two leaps: the second is into a frame below that of the first. */
static void test_one_frame_after_the_other(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_THROUGH, F);
	call(t, CALL_2, F);
	throw_from(t, CALL_1);
	gap(t, GAP_OVERFLOW);
	begin(t, RAISE + 0x20);
	jump(t, RAISE + 0x80, PAD_1);
	call(t, PAD_1 + 4, RESUME);
	jump(t, RESUME + 0x80, PAD_2);
	call(t, PAD_2 + 4, RESUME);
	jump(t, RESUME + 0x80, OUTER_PAD);
	expect(t, OUTER_PAD + 8,
	       "outer 10-140 inferred-start inferred-end inferred\n"
	       "  f 20-130 inferred-end inferred\n"
	       "    f 30-130 cut inferred by-throw\n"
	       "      f 40-110 cut inferred by-throw\n"
	       "        __cxa_throw 50-90 inferred-end inferred\n"
	       "          _Unwind_RaiseException 60-90 cut inferred by-throw\n"
	       "            [gap: overflow] 70-80\n"
	       "        _Unwind_Resume 100-110 cut by-throw\n"
	       "      _Unwind_Resume 120-130 cut by-throw\n",
	       "_Unwind_RaiseException@60 outer@10 throw 80-130\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_across_a_gap),
		TEST(test_the_pad_is_for_a_call_from_before_the_gap),
		TEST(test_one_frame_after_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
