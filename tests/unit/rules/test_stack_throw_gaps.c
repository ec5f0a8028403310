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
	       "    f 30-110 cut inferred by-throw\n"
	       "      f 40-110 cut inferred by-throw\n"
	       "        __cxa_throw 50-110 cut inferred by-throw\n"
	       "          _Unwind_RaiseException 60-110 cut inferred by-throw\n"
	       "            middle 70-100 inferred\n"
	       "              [gap: overflow] 80-90\n",
	       "_Unwind_RaiseException@60 f@20 throw 90-110\n");
}

/* The same of two unwinds: the second is into a frame below that of the first. */
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
	       "  f 20-130 cut inferred by-throw\n"
	       "    f 30-130 cut inferred by-throw\n"
	       "      f 40-110 cut inferred by-throw\n"
	       "        __cxa_throw 50-90 cut inferred by-throw\n"
	       "          _Unwind_RaiseException 60-90 cut inferred by-throw\n"
	       "            [gap: overflow] 70-80\n"
	       "        _Unwind_Resume 100-110 cut by-throw\n"
	       "      _Unwind_Resume 120-130 cut by-throw\n",
	       "_Unwind_RaiseException@60 outer@10 throw 80-130\n");
}

/* f was called in the gap: that it is below what threw shows where the exception lands. */
static void test_into_a_frame_that_only_the_unwind_shows(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	gap(t, GAP_OVERFLOW);
	begin(t, MIDDLE + 4);
	throw_from(t, MIDDLE + 0x10);
	jump(t, RAISE + 0x80, PAD_1);
	ret(t, PAD_1 + 4, OUTER_CALL + CALL_LEN);
	expect(t, OUTER + 0x20,
	       "outer 10-80 inferred-start inferred-end inferred\n"
	       "  [gap: overflow] 20-30\n"
	       "  f 30-70 inferred-start inferred\n"
	       "    middle 30-60 inferred-start cut by-throw\n"
	       "      __cxa_throw 40-60 cut by-throw\n"
	       "        _Unwind_RaiseException 50-60 cut by-throw\n",
	       "__cxa_throw@40 f@30 throw 40-60\n");
}

/* Any f may have thrown it. Those above the one that takes it run until then: the innermost has. */
static void test_out_of_the_innermost_that_may_have_thrown(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, F);
	call(t, CALL_THROUGH, F);
	gap(t, GAP_OVERFLOW);
	begin(t, F + 4);
	throw_from(t, CALL_THROUGH);
	jump(t, RAISE + 0x80, PAD_1);
	expect(t, PAD_1 + 8,
	       "outer 10-100 inferred-start inferred-end inferred\n"
	       "  f 20-100 inferred-end inferred\n"
	       "    f 30-90 cut inferred by-throw\n"
	       "      f 40-90 cut inferred by-throw\n"
	       "        [gap: overflow] 50-60\n"
	       "        __cxa_throw 70-90 cut by-throw\n"
	       "          _Unwind_RaiseException 80-90 cut by-throw\n",
	       "__cxa_throw@70 f@20 throw 70-90\n");
}

/*
 * It may have come to another clean-up in the gap, and be called by that one. That nothing has
 * happened but what is seen is right more often: _Unwind_Resume() runs on.
 */
static void test_out_of_a_clean_up_in_the_gap(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, F);
	call(t, CALL_2, F);
	throw_from(t, CALL_1);
	jump(t, RAISE + 0x80, PAD_1);
	call(t, PAD_1 + 4, RESUME);
	gap(t, GAP_OVERFLOW);
	begin(t, RESUME + 0x10);
	jump(t, RESUME + 0x80, PAD_1);
	expect(t, PAD_1 + 8,
	       "outer 10-120 inferred-start inferred-end inferred\n"
	       "  f 20-120 inferred-end inferred\n"
	       "    f 30-110 cut inferred by-throw\n"
	       "      f 40-110 cut inferred by-throw\n"
	       "        __cxa_throw 50-70 cut by-throw\n"
	       "          _Unwind_RaiseException 60-70 cut by-throw\n"
	       "        _Unwind_Resume 80-110 cut inferred by-throw\n"
	       "          [gap: overflow] 90-100\n",
	       "__cxa_throw@50 f@40 throw 50-70\n"
	       "_Unwind_Resume@80 f@20 throw 100-110\n");
}

/*
 * It has come past no frame with a pad for it: behind the gap it was one further below than the
 * innermost that it can have been.
 */
static void test_which_level_it_had_come_to(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, F);
	call(t, CALL_1, F);
	throw_from(t, CALL_1);
	jump(t, RAISE + 0x80, PAD_1);
	call(t, CALL_2, RESUME); /* 80 */
	gap(t, GAP_OVERFLOW);
	begin(t, RESUME + 0x10);
	jump(t, RESUME + 0x80, PAD_1); /* 110 */
	call(t, PAD_1 + 4, RESUME);
	jump(t, RESUME + 0x80, OUTER_PAD);
	expect(t, OUTER_PAD + 8,
	       "outer 10-140 inferred-start inferred-end inferred\n"
	       "  f 20-130 cut inferred by-throw\n"
	       "    f 30-110 cut inferred by-throw\n"
	       "      f 40-90 inferred-end\n"
	       "        __cxa_throw 50-70 cut by-throw\n"
	       "          _Unwind_RaiseException 60-70 cut by-throw\n"
	       "        _Unwind_Resume 80-90 inferred-end\n"
	       "      [gap: overflow] 90-100\n"
	       "      _Unwind_Resume 100-110 inferred-start cut by-throw\n"
	       "    _Unwind_Resume 120-130 cut by-throw\n",
	       "__cxa_throw@50 f@40 throw 50-70\n"
	       "_Unwind_Resume@100 outer@10 throw 100-130\n");
}

/* What is thrown anew may be of a type that the frames between do not take. */
static void test_another_exception_may_pass(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, F);
	call(t, CALL_1, F);
	throw_from(t, CALL_1);
	gap(t, GAP_OVERFLOW);
	begin(t, RAISE + 0x20);
	jump(t, RAISE + 0x80, PAD_1); /* 90 */
	throw_from(t, PAD_1 + 4);
	jump(t, RAISE + 0x80, OUTER_PAD); /* 120 */
	expect(t, OUTER_PAD + 8,
	       "outer 10-130 inferred-start inferred-end inferred\n"
	       "  f 20-120 cut inferred by-throw\n"
	       "    f 30-120 cut inferred by-throw\n"
	       "      f 40-120 cut inferred by-throw\n"
	       "        __cxa_throw 50-90 cut inferred by-throw\n"
	       "          _Unwind_RaiseException 60-90 cut inferred by-throw\n"
	       "            [gap: overflow] 70-80\n"
	       "        __cxa_throw 100-120 cut by-throw\n"
	       "          _Unwind_RaiseException 110-120 cut by-throw\n",
	       "_Unwind_RaiseException@60 f@40 throw 80-90\n"
	       "__cxa_throw@100 outer@10 throw 100-120\n");
}

/* Nobody else has called what unwinds. */
static void test_what_unwinds_is_called_by_what_threw(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_2, THROW);
	gap(t, GAP_OVERFLOW);
	begin(t, RAISE + 0x10);
	jump(t, RAISE + 0x80, PAD_2);
	expect(t, PAD_2 + 8,
	       "outer 10-70 inferred-start inferred-end inferred\n"
	       "  f 20-70 inferred-end inferred\n"
	       "    __cxa_throw 30-60 cut inferred by-throw\n"
	       "      [gap: overflow] 40-50\n"
	       "      _Unwind_RaiseException 50-60 inferred-start cut by-throw\n",
	       "_Unwind_RaiseException@50 f@20 throw 50-60\n");
}

/* It has not landed yet when the trace ends. */
static void test_an_unwinding_across_a_gap(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	throw_from(t, CALL_2);
	gap(t, GAP_OVERFLOW);
	begin(t, RAISE + 0x10);
	call(t, RAISE + 0x20, MIDDLE);
	expect(t, MIDDLE + 8,
	       "outer 10-80 inferred-start inferred-end inferred\n"
	       "  f 20-80 inferred-end inferred\n"
	       "    __cxa_throw 30-80 inferred-end inferred\n"
	       "      _Unwind_RaiseException 40-80 inferred-end inferred\n"
	       "        [gap: overflow] 50-60\n"
	       "        middle 70-80 inferred-end\n",
	       "");
}

static void do_anything(struct thread *t, unsigned int *seed)
{
	static const uint64_t entries[] = {OUTER, F, F, MIDDLE, THROW, RAISE, RESUME, SETJMP};
	static const uint64_t sites[] = {OUTER_CALL, CALL_1, CALL_2, CALL_THROUGH, MIDDLE + 0x10};
	static const uint64_t pads[] = {PAD_1, PAD_2, OUTER_PAD, SETJMP + 0x80};
	uint64_t function = entries[(size_t)rand_r(seed) % 8];
	uint64_t site = sites[(size_t)rand_r(seed) % 5], pad = pads[(size_t)rand_r(seed) % 4];

	switch (rand_r(seed) % 8) {
	case 0:
	case 1:
		call(t, site, function);
		break;
	case 2:
		throw_from(t, site);
		break;
	case 3:
		jump(t, RAISE + 0x80, pad);
		break;
	case 4:
		call(t, pad + 4, RESUME);
		break;
	case 5:
	case 6:
		ret(t, function + 0x40, site + CALL_LEN);
		break;
	default:
		gap(t, rand_r(seed) % 8 ? GAP_OVERFLOW : GAP_BETWEEN);
		begin(t, function + 4);
	}
}

/* Whatever is thrown, and lost, what comes out is a tree. */
static void test_random_throws_give_trees(void **state)
{
	struct thread *t = *state;
	unsigned int seed = 3;
	size_t n_unwinds = 0;

	for (int round = 0; round < 3000; round++) {
		struct call_tree tree;

		start_anew(t);
		begin(t, OUTER + 4);
		for (int i = rand_r(&seed) % 120; i >= 0; i--)
			do_anything(t, &seed);
		assert_int_equal(stack__finish(t->stack, &tree), 0);
		assert_well_formed(&tree);
		n_unwinds += tree.unwinds.n;
		call_tree__fini(&tree);
	}
	assert_true(n_unwinds > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_across_a_gap),
		TEST(test_the_pad_is_for_a_call_from_before_the_gap),
		TEST(test_one_frame_after_the_other),
		TEST(test_into_a_frame_that_only_the_unwind_shows),
		TEST(test_out_of_the_innermost_that_may_have_thrown),
		TEST(test_out_of_a_clean_up_in_the_gap),
		TEST(test_which_level_it_had_come_to),
		TEST(test_another_exception_may_pass),
		TEST(test_what_unwinds_is_called_by_what_threw),
		TEST(test_an_unwinding_across_a_gap),
		TEST(test_random_throws_give_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
