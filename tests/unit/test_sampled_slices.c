// SPDX-License-Identifier: MIT
/* Stacks of moments to slices: what stays open, where edges lie, and which of them are exact. */
#include "tree_text.h"

#include <string.h>

#include "sampled/slices.h"
#include "stack/stack.h"

#define PERIOD 100

static const struct function main_ = {.name = "main", .module = "x"};
static const struct function iter = {.name = "iter", .module = "x"};
static const struct function find = {.name = "find", .module = "x"};
static const struct function grow = {.name = "grow", .module = "x"};

struct fixture {
	struct call_tree tree;
	struct slices slices;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->slices = (struct slices){.tree = &f->tree, .period_ns = PERIOD};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	slices__fini(&f->slices);
	call_tree__fini(&f->tree);
	free(f);
	return 0;
}

/* Outermost first, to NULL; each calls the next from one place, whatever it is. */
static void see(struct fixture *f, uint64_t time_ns, const struct function *const *functions)
{
	struct seen stack[8];
	size_t n = 0;

	for (; functions[n]; n++)
		stack[n] = (struct seen){.function = functions[n],
					 .ip = 0x1000 + n,
					 .return_ip = n ? 0x2000 + n : 0,
					 .kind = CALL_FUNCTION};
	slices__see(&f->slices, time_ns, stack, n);
}

#define SEE(f, time, ...) see(f, time, (const struct function *const[]){__VA_ARGS__, NULL})

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

static void assert_slices(struct fixture *f, uint64_t end_ns, const char *expected)
{
	slices__end(&f->slices, end_ns);
	assert_false(f->slices.failed);
	for (size_t i = 0; i < f->tree.calls.n; i++)
		assert_true(f->tree.calls.v[i].flags & CALL_SAMPLED);
	assert_tree(&f->tree, expected);
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
		      "  grow 1950-2000 inferred-start inferred-end\n");
}

static void test_time_off_the_cpu_is_exact(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_, &find);
	slices__off(&f->slices, 1010, OFF_BLOCKED);
	slices__on(&f->slices, 9000);
	SEE(f, 9050, &main_, &find);
	slices__off(&f->slices, 9060, OFF_PREEMPTED);
	slices__on(&f->slices, 9070);
	assert_slices(f, 9100,
		      "main 1000-9100 inferred-start inferred-end\n"
		      "  find 1000-9100 inferred-start inferred-end\n"
		      "    [blocked] 1010-9000\n"
		      "    [preempted] 9060-9070\n");
}

/* From the wake-up on it waits for a CPU only. */
static void test_who_woke_it(void **state)
{
	struct fixture *f = *state;
	struct done_by by = {.pid = 7, .tid = 8, .comm = "holder"}, nobody = {0};
	const struct done_by *found;

	SEE(f, 1000, &main_);
	/* Before it has left its CPU: then it does not. */
	slices__woken(&f->slices, 1005, &by);
	slices__off(&f->slices, 1010, OFF_BLOCKED);
	slices__woken(&f->slices, 1500, &by);
	slices__woken(&f->slices, 1510, &by);
	slices__on(&f->slices, 1600);
	slices__off(&f->slices, 1700, OFF_BLOCKED);
	slices__woken(&f->slices, 1800, &nobody);
	slices__on(&f->slices, 1900);
	assert_slices(f, 2000,
		      "main 1000-2000 inferred-start inferred-end\n"
		      "  [blocked] 1010-1500\n"
		      "  [runnable] 1500-1600\n"
		      "  [blocked] 1700-1800\n"
		      "  [runnable] 1800-1900\n");
	assert_int_equal(f->tree.done_by.n, 1);
	found = call_tree__done_by(&f->tree, &f->tree.calls.v[1]);
	assert_non_null(found);
	assert_int_equal(found->tid, 8);
	assert_string_equal(found->comm, "holder");
}

static void test_who_ran_in_its_place(void **state)
{
	struct fixture *f = *state;
	struct done_by by = {.pid = 7, .tid = 8, .comm = "hog"};
	struct done_by other = {.pid = 9, .tid = 9}, idle = {0};

	SEE(f, 1000, &main_);
	/* The hog for 50, in two turns; the other for 40. */
	slices__replaced(&f->slices, 1009, &by);
	slices__off(&f->slices, 1010, OFF_PREEMPTED);
	slices__replaced(&f->slices, 1030, &other);
	slices__replaced(&f->slices, 1070, &by);
	slices__on(&f->slices, 1100);
	/* Nobody is known this time, nor to blame for what it waits for by itself. */
	slices__off(&f->slices, 1200, OFF_PREEMPTED);
	slices__on(&f->slices, 1300);
	slices__replaced(&f->slices, 1399, &by);
	slices__off(&f->slices, 1400, OFF_BLOCKED);
	slices__on(&f->slices, 1500);
	/* Awake, but who ran when it had been woken is the other. */
	slices__replaced(&f->slices, 1599, &by);
	slices__off(&f->slices, 1600, OFF_BLOCKED);
	slices__replaced(&f->slices, 1650, &other);
	slices__woken(&f->slices, 1660, &idle);
	slices__on(&f->slices, 1700);
	slices__end(&f->slices, 1700);
	assert_int_equal(f->tree.done_by.n, 3);
	assert_int_equal(f->tree.done_by.v[0].ns, 50);
	assert_int_equal(f->tree.done_by.v[1].tid, 9);
	assert_int_equal(f->tree.done_by.v[1].ns, 40);
	assert_int_equal(call_tree__done_by(&f->tree, &f->tree.calls.v[5])->tid, 9);
	assert_int_equal(f->tree.done_by.v[2].ns, 40);
	assert_int_equal(call_tree__done_by(&f->tree, &f->tree.calls.v[1])->tid, 8);
	assert_null(call_tree__done_by(&f->tree, &f->tree.calls.v[2]));
	assert_null(call_tree__done_by(&f->tree, &f->tree.calls.v[0]));
}

static void test_off_the_cpu_at_the_end(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_);
	slices__off(&f->slices, 1010, OFF_BLOCKED);
	assert_slices(f, 2000,
		      "main 1000-2000 inferred-start inferred-end\n"
		      "  [blocked] 1010-2000 inferred-end\n");
}

/* A record of its return is missing: a stack shows that it is back. */
static void test_a_stack_ends_time_off_the_cpu(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_);
	slices__off(&f->slices, 1010, OFF_BLOCKED);
	slices__off(&f->slices, 1500, OFF_BLOCKED);
	SEE(f, 2000, &main_);
	assert_slices(f, 2000,
		      "main 1000-2000 inferred-start inferred-end\n"
		      "  [blocked] 1010-1500\n"
		      "  [blocked] 1500-2000\n");
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_two_stacks_have_in_common_stays),
		TEST(test_another_call_site_is_another_call),
		TEST(test_far_apart_edges_are_near_what_was_seen),
		TEST(test_time_off_the_cpu_is_exact),
		TEST(test_who_woke_it),
		TEST(test_who_ran_in_its_place),
		TEST(test_off_the_cpu_at_the_end),
		TEST(test_a_stack_ends_time_off_the_cpu),
		TEST(test_an_entry_is_exact),
		TEST(test_an_entry_between_equal_stacks_divides_them),
		TEST(test_entries_between_two_samples),
		TEST(test_a_return_is_exact),
		TEST(test_recursive_calls_lie_in_each_other),
		TEST(test_a_recursive_call_that_has_returned),
		TEST(test_a_tail_call_takes_its_frame),
		TEST(test_a_tail_call_later_on),
		TEST(test_an_entry_at_the_end),
		TEST(test_kernel_code_is_a_slice_of_its_own),
		TEST(test_nothing_common),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
