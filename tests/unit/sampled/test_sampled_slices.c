// SPDX-License-Identifier: MIT
/* Stacks of moments to slices: what stays open, where edges lie, and which of them are exact. */
#include "sampled_slices_fixture.h"

static void enter_function(struct fixture *f, const struct function *function, uint64_t start_ns,
			   uint64_t end_ns)
{
	struct entered entered = {.function = function,
				  .start_ns = start_ns,
				  .end_ns = end_ns,
				  .end = end_ns ? END_KNOWN : END_UNKNOWN,
				  .kind = CALL_FUNCTION};

	slices__enter(&f->slices, &entered);
}

static void enter(struct fixture *f, uint64_t start_ns, uint64_t end_ns)
{
	enter_function(f, &iter, start_ns, end_ns);
}

static void test_what_two_stacks_have_in_common_stays(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_, &find);
	SEE(f, 1100, &main_, &find);
	SEE(f, 1200, &main_, &grow);
	assert_slices(f, 1300,
		      "main 1000-1300 inferred-start inferred-end\n"
		      "  find 1000-1150 inferred-start inferred-end\n"
		      "  grow 1150-1300 inferred-start inferred-end\n");
}

static void test_another_call_site_is_another_call(void **state)
{
	struct fixture *f = *state;
	struct seen stack[] = {{&main_, 1, 0, CALL_FUNCTION}, {&find, 2, 0x20, CALL_FUNCTION}};

	slices__see(&f->slices, 1000, stack, 2);
	stack[1].return_ip = 0x30;
	slices__see(&f->slices, 1100, stack, 2);
	/* Where it is by itself now tells nothing. */
	stack[1].ip = 7;
	slices__see(&f->slices, 1200, stack, 2);
	assert_slices(f, 1200,
		      "main 1000-1200 inferred-start inferred-end\n"
		      "  find 1000-1050 inferred-start inferred-end\n"
		      "  find 1050-1200 inferred-start inferred-end\n");
}

/* Samples that are missing prove nothing: each is good for half a period on either side. */
static void test_far_apart_edges_are_near_what_was_seen(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_, &find);
	SEE(f, 2000, &main_, &grow);
	assert_slices(f, 2000,
		      "main 1000-2000 inferred-start inferred-end\n"
		      "  find 1000-1050 inferred-start inferred-end\n"
		      "  [not recorded] 1050-1950\n"
		      "  grow 1950-2000 inferred-start inferred-end\n");
}

static void test_an_entry_is_exact(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_);
	enter(f, 1030, 0);
	SEE(f, 1100, &main_, &iter, &find);
	assert_slices(f, 1200,
		      "main 1000-1200 inferred-start inferred-end\n"
		      "  iter 1030-1200 inferred-end\n"
		      "    find 1065-1200 inferred-start inferred-end\n");
}

/* Both stacks are the same, and yet the calls are not. */
static void test_an_entry_between_equal_stacks_divides_them(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_, &iter, &find);
	enter(f, 1080, 0);
	SEE(f, 1100, &main_, &iter, &find);
	assert_slices(f, 1200,
		      "main 1000-1200 inferred-start inferred-end\n"
		      "  iter 1000-1040 inferred-start inferred-end\n"
		      "    find 1000-1040 inferred-start inferred-end\n"
		      "  iter 1080-1200 inferred-end\n"
		      "    find 1090-1200 inferred-start inferred-end\n");
}

static void test_entries_between_two_samples(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_);
	enter(f, 1010, 0);
	enter(f, 1020, 0);
	enter(f, 1030, 0);
	SEE(f, 1100, &main_, &iter);
	enter(f, 1110, 0);
	SEE(f, 1200, &main_, &find);
	assert_slices(f, 1200,
		      "main 1000-1200 inferred-start inferred-end\n"
		      "  iter 1010-1010 inferred-end\n"
		      "  iter 1020-1020 inferred-end\n"
		      "  iter 1030-1105 inferred-end\n"
		      "  iter 1110-1110 inferred-end\n"
		      "  find 1155-1200 inferred-start inferred-end\n");
}

static void test_a_return_is_exact(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_);
	enter(f, 1010, 1015);
	enter(f, 1030, 1150);
	SEE(f, 1100, &main_, &iter, &find);
	SEE(f, 1200, &main_);
	assert_slices(f, 1200,
		      "main 1000-1200 inferred-start inferred-end\n"
		      "  iter 1010-1015\n"
		      "  iter 1030-1150\n"
		      "    find 1065-1125 inferred-start inferred-end\n");
}

/* Its frame is that of what it called last; its return is known all the same. */
static void test_a_tail_call_takes_its_frame(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_);
	enter(f, 1030, 1350);
	SEE(f, 1100, &main_, &find);
	slices__off(&f->slices, 1110, OFF_BLOCKED);
	slices__on(&f->slices, 1190);
	SEE(f, 1200, &main_, &find);
	SEE(f, 1300, &main_, &grow);
	SEE(f, 1400, &main_, &grow);
	assert_slices(f, 1400,
		      "main 1000-1400 inferred-start inferred-end\n"
		      "  iter 1030-1350\n"
		      "    find 1065-1250 inferred-start inferred-end\n"
		      "      [blocked] 1110-1190\n"
		      "    grow 1250-1325 inferred-start inferred-end\n"
		      "  grow 1375-1400 inferred-start inferred-end\n");
}

/* The same, when a stack has shown it before that. */
static void test_a_tail_call_later_on(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_);
	enter(f, 1030, 1350);
	SEE(f, 1100, &main_, &iter, &find);
	SEE(f, 1200, &main_, &grow);
	SEE(f, 1300, &main_, &grow);
	SEE(f, 1400, &main_);
	assert_slices(f, 1400,
		      "main 1000-1400 inferred-start inferred-end\n"
		      "  iter 1030-1350\n"
		      "    find 1065-1150 inferred-start inferred-end\n"
		      "    grow 1150-1325 inferred-start inferred-end\n");
}

static void test_recursive_calls_lie_in_each_other(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_);
	enter(f, 1010, 1190);
	enter(f, 1020, 1030);
	enter(f, 1040, 1180);
	SEE(f, 1100, &main_, &iter, &iter);
	enter(f, 1120, 1130);
	SEE(f, 1200, &main_);
	assert_slices(f, 1200,
		      "main 1000-1200 inferred-start inferred-end\n"
		      "  iter 1010-1190\n"
		      "    iter 1020-1030\n"
		      "    iter 1040-1180\n"
		      "      iter 1120-1130\n");
}

/* It has returned before the stack was taken: what is in that is an older one. */
static void test_a_recursive_call_that_has_returned(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_, &iter, &find);
	enter(f, 1010, 1020);
	SEE(f, 1100, &main_, &iter, &find);
	assert_slices(f, 1100,
		      "main 1000-1100 inferred-start inferred-end\n"
		      "  iter 1000-1100 inferred-start inferred-end\n"
		      "    find 1000-1100 inferred-start inferred-end\n"
		      "      iter 1010-1020\n");
}

/* The trigger's own hit comes after the last sample. */
static void test_an_entry_at_the_end(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_, &iter, &find);
	enter(f, 1050, 0);
	assert_slices(f, 1050,
		      "main 1000-1050 inferred-start inferred-end\n"
		      "  iter 1000-1025 inferred-start inferred-end\n"
		      "    find 1000-1025 inferred-start inferred-end\n"
		      "  iter 1050-1050 inferred-end\n");
}

static void test_kernel_code_is_a_slice_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct seen stack[] = {{&main_, 1, 0, CALL_FUNCTION}, {NULL, 0, 0, CALL_IN_KERNEL}};

	slices__see(&f->slices, 1000, stack, 2);
	slices__see(&f->slices, 1100, stack, 2);
	slices__see(&f->slices, 1200, stack, 1);
	assert_slices(f, 1200,
		      "main 1000-1200 inferred-start inferred-end\n"
		      "  [kernel] 1000-1150 inferred-start inferred-end\n");
}

static void test_nothing_common(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_, &find);
	SEE(f, 1100, &grow);
	SEE(f, 1200, NULL);
	assert_slices(f, 1300,
		      "main 1000-1050 inferred-start inferred-end\n"
		      "  find 1000-1050 inferred-start inferred-end\n"
		      "grow 1050-1150 inferred-start inferred-end\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SLICES_TEST(test_what_two_stacks_have_in_common_stays),
		SLICES_TEST(test_another_call_site_is_another_call),
		SLICES_TEST(test_far_apart_edges_are_near_what_was_seen),
		SLICES_TEST(test_an_entry_is_exact),
		SLICES_TEST(test_an_entry_between_equal_stacks_divides_them),
		SLICES_TEST(test_entries_between_two_samples),
		SLICES_TEST(test_a_return_is_exact),
		SLICES_TEST(test_recursive_calls_lie_in_each_other),
		SLICES_TEST(test_a_recursive_call_that_has_returned),
		SLICES_TEST(test_a_tail_call_takes_its_frame),
		SLICES_TEST(test_a_tail_call_later_on),
		SLICES_TEST(test_an_entry_at_the_end),
		SLICES_TEST(test_kernel_code_is_a_slice_of_its_own),
		SLICES_TEST(test_nothing_common),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
