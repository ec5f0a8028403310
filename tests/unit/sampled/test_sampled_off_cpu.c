// SPDX-License-Identifier: MIT
/* Slices of time off the CPU: why, who woke it, who ran in its place. */
#include "sampled_slices_fixture.h"

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

/*
 * The wake-up comes when it is on its way to sleep: it leaves its CPU, and is ready all the time.
 * That is so only if nobody wakes it later, and it went to sleep at once.
 */
static void test_woken_on_its_way_to_sleep(void **state)
{
	struct fixture *f = *state;
	const struct waits_for wait = {.syscall = 202, .fd = -1};
	struct done_by by = {.pid = 7, .tid = 8, .comm = "holder"};
	struct done_by hog = {.pid = 9, .tid = 9, .comm = "hog"};

	SEE(f, 1000, &main_);
	slices__woken(&f->slices, 1005, &by);
	slices__waits(&f->slices, &wait);
	slices__replaced(&f->slices, 1009, &hog);
	slices__off(&f->slices, 1010, OFF_BLOCKED);
	slices__on(&f->slices, 1500);
	/* Its next sleep has nothing to do with that. */
	slices__waits(&f->slices, &wait);
	slices__off(&f->slices, 1600, OFF_BLOCKED);
	slices__on(&f->slices, 1700);
	/* It did not go to sleep then, but later. */
	slices__woken(&f->slices, 1800, &by);
	SEE(f, 201790, &main_);
	slices__off(&f->slices, 201801, OFF_BLOCKED);
	slices__on(&f->slices, 202000);
	assert_slices(f, 202010,
		      "main 1000-202010 inferred-start inferred-end\n"
		      "  [runnable] 1010-1500\n"
		      "  [blocked] 1600-1700\n"
		      "  [not recorded] 1700-201740\n"
		      "  [blocked] 201801-202000\n");
	assert_int_equal(f->tree.waits.n, 1);
	assert_int_equal(f->tree.waits.v[0].call, 2);
	assert_int_equal(f->tree.done_by.n, 1);
	assert_int_equal(f->tree.done_by.v[0].tid, 9);
	assert_int_equal(f->tree.done_by.v[0].ns, 490);
}

/* The record of its return is missing, and it is woken on its way to its next sleep. */
static void test_woken_early_after_a_return_that_is_missing(void **state)
{
	struct fixture *f = *state;
	struct done_by by = {.pid = 7, .tid = 8, .comm = "holder"};

	SEE(f, 1000, &main_);
	slices__off(&f->slices, 1010, OFF_BLOCKED);
	slices__woken(&f->slices, 1500, &by);
	slices__off(&f->slices, 1510, OFF_BLOCKED);
	slices__on(&f->slices, 1900);
	assert_slices(f, 2000,
		      "main 1000-2000 inferred-start inferred-end\n"
		      "  [blocked] 1010-1500\n"
		      "  [runnable] 1500-1510\n"
		      "  [runnable] 1510-1900\n");
}

/* It came back, and nobody saw when: how long it was ready is not known. */
static void test_woken_early_before_a_return_that_is_missing(void **state)
{
	struct fixture *f = *state;
	struct done_by by = {.pid = 7, .tid = 8, .comm = "holder"};

	SEE(f, 1000, &main_);
	slices__woken(&f->slices, 1005, &by);
	slices__off(&f->slices, 1010, OFF_BLOCKED);
	slices__off(&f->slices, 1500, OFF_BLOCKED);
	SEE(f, 2000, &main_);
	assert_slices(f, 2000,
		      "main 1000-2000 inferred-start inferred-end\n"
		      "  [blocked] 1010-1500\n"
		      "  [blocked] 1500-2000\n");
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

/* Who ran while there was no time left is a bystander; who ran behind that is not. */
static void test_a_quota_that_is_used_up(void **state)
{
	struct fixture *f = *state;
	struct done_by by = {.pid = 7, .tid = 8, .comm = "bystander"};

	SEE(f, 1000, &main_);
	slices__off(&f->slices, 1010, OFF_PREEMPTED);
	slices__replaced(&f->slices, 1011, &by);
	slices__replaced(&f->slices, 1100, &by);
	assert_int_equal(slices__waits_since(&f->slices), 1010);
	slices__throttled(&f->slices, 1300, 250, "cgroup /a");
	slices__on(&f->slices, 1300);
	slices__off(&f->slices, 1310, OFF_BLOCKED);
	assert_int_equal(slices__waits_since(&f->slices), 0);
	slices__woken(&f->slices, 1350, &by);
	slices__throttled(&f->slices, 1400, 50, NULL);
	slices__on(&f->slices, 1400);
	assert_slices(f, 1500,
		      "main 1000-1500 inferred-start inferred-end\n"
		      "  [throttled] 1010-1260\n"
		      "  [runnable] 1260-1300\n"
		      "  [blocked] 1310-1350\n"
		      "  [throttled] 1350-1400\n");
	assert_int_equal(f->tree.waits.n, 1);
	assert_string_equal(f->tree.waits.v[0].text, "cgroup /a");
	assert_null(call_tree__done_by(&f->tree, &f->tree.calls.v[1]));
	assert_null(call_tree__done_by(&f->tree, &f->tree.calls.v[2]));
}

static void test_a_cpu_that_did_not_run(void **state)
{
	struct fixture *f = *state;

	SEE(f, 1000, &main_, &find);
	slices__stolen(&f->slices, 1050, 1090);
	SEE(f, 1100, &main_, &find);
	/* It is known of too late. */
	slices__stolen(&f->slices, 1080, 1120);
	slices__stolen(&f->slices, 1150, 1180);
	assert_slices(f, 1200,
		      "main 1000-1200 inferred-start inferred-end\n"
		      "  find 1000-1200 inferred-start inferred-end\n"
		      "    [stolen] 1050-1090\n"
		      "    [stolen] 1150-1180\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SLICES_TEST(test_time_off_the_cpu_is_exact),
		SLICES_TEST(test_who_woke_it),
		SLICES_TEST(test_woken_on_its_way_to_sleep),
		SLICES_TEST(test_woken_early_after_a_return_that_is_missing),
		SLICES_TEST(test_woken_early_before_a_return_that_is_missing),
		SLICES_TEST(test_who_ran_in_its_place),
		SLICES_TEST(test_off_the_cpu_at_the_end),
		SLICES_TEST(test_a_stack_ends_time_off_the_cpu),
		SLICES_TEST(test_a_quota_that_is_used_up),
		SLICES_TEST(test_a_cpu_that_did_not_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
