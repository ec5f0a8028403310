// SPDX-License-Identifier: MIT
/* Which of the hits that pass the threshold trigger, and when it is over, on this kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "trigger_fixture.h"

static void test_the_first_are_let_pass(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){.limits.skip = 3}, hit_me);
	run(fixture, HIT, 2); /* not armed: nobody lets them pass */
	arm(fixture);
	run(fixture, HIT, 3);
	expect_no_hit(fixture);
	run(fixture, HIT, 2);
	assert_int_equal(expect_hit(fixture).sequence, 6);
	assert_int_equal(stats_of(fixture).let_pass, 3);
	arm(fixture);
	run(fixture, HIT, 1);
	assert_int_equal(expect_hit(fixture).sequence, 8);
	assert_int_equal(stats_of(fixture).let_pass, 3);
}

static void test_only_slow_ones_count_as_let_pass(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){.delay_thresh_ns = THRESH_NS, .limits.skip = 1},
		  hit_me);
	arm(fixture);
	run(fixture, HIT, 100);
	run(fixture, HIT_LATE, SLOW_MS);
	run(fixture, HIT, 100);
	expect_no_hit(fixture);
	run(fixture, HIT_LATE, SLOW_MS);
	assert_int_equal(expect_hit(fixture).sequence, 202);
}

static void test_not_at_the_beginning(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){.limits.after_ns = THRESH_NS}, hit_me);
	arm(fixture);
	run(fixture, HIT, 10);
	expect_no_hit(fixture);
	assert_int_equal(stats_of(fixture).let_pass, 10);
	run(fixture, HIT_LATE, SLOW_MS);
	assert_int_equal(expect_hit(fixture).sequence, 11);
	/* The beginning is the first one. */
	arm(fixture);
	run(fixture, HIT, 1);
	assert_int_equal(expect_hit(fixture).sequence, 12);
}

static void test_an_interval_between_two(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){.limits.min_interval_ns = THRESH_NS}, hit_me);
	arm(fixture);
	run(fixture, HIT, 1);
	assert_int_equal(expect_hit(fixture).sequence, 1);
	arm(fixture);
	run(fixture, HIT, 10);
	expect_no_hit(fixture);
	run(fixture, HIT_LATE, SLOW_MS);
	assert_int_equal(expect_hit(fixture).sequence, 12);
	assert_int_equal(stats_of(fixture).let_pass, 10);
}

static void expect_last(const struct fixture *fixture, uint64_t hits)
{
	struct mt_hit hit = expect_hit(fixture);

	assert_int_equal(hit.reason, MT_HIT_LAST);
	/* Whose it is: at its return its own ip is its caller's. */
	assert_true(hit.probe_ip == (uintptr_t)hit_me || hit.probe_ip == (uintptr_t)timed);
	expect_no_hit(fixture);
	assert_int_equal(stats_of(fixture).hits, hits);
}

static void test_the_last_hit_ends_it(void **state)
{
	struct fixture *fixture = *state;
	struct mt_hit hit;

	attach_to(fixture,
		  (struct trigger_config){.delay_thresh_ns = THRESH_NS, .limits.max_hits = 10},
		  hit_me);
	run(fixture, HIT, 20); /* before it is armed: they do not count */
	arm(fixture);
	run(fixture, HIT, 9);
	expect_no_hit(fixture);
	run(fixture, HIT, 5);
	hit = expect_hit(fixture);
	assert_int_equal(hit.reason, MT_HIT_LAST);
	assert_int_equal(hit.sequence, 10);
	assert_int_equal(count_of(fixture->entry), 1);
	arm(fixture);
	run(fixture, HIT_LATE, SLOW_MS); /* slow, but over is over */
	expect_last(fixture, 10);
}

static void test_limits_do_not_hold_the_last_back(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture,
		  (struct trigger_config){.limits.after_ns = 1000000 * MS,
					  .limits.skip = 1000,
					  .limits.min_interval_ns = 1000000 * MS,
					  .limits.max_hits = 3},
		  hit_me);
	arm(fixture);
	run(fixture, HIT, 5);
	expect_last(fixture, 3);
}

static void test_the_last_may_be_a_trigger(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){.limits.max_hits = 3}, hit_me);
	arm(fixture);
	run(fixture, HIT, 2);
	expect_hit(fixture);
	arm(fixture);
	run(fixture, HIT, 1);
	assert_int_equal(expect_hit(fixture).reason, MT_HIT_EVERY);
	expect_no_hit(fixture);
	assert_int_equal(count_of(fixture->entry), 2);
	arm(fixture);
	run(fixture, HIT, 1);
	expect_last(fixture, 3);
}

static void test_of_durations_the_returns_are_counted(void **state)
{
	struct fixture *fixture = *state;
	struct mt_stats stats;

	attach_to(fixture,
		  (struct trigger_config){.duration_thresh_ns = THRESH_NS, .limits.max_hits = 5},
		  timed);
	arm(fixture);
	run(fixture, TIMED_JUMP_OUT, 3);
	for (int i = 0; i < 4; i++)
		run(fixture, TIMED, 0);
	expect_no_hit(fixture);
	run(fixture, TIMED, 0);
	expect_last(fixture, 8);
	stats = stats_of(fixture);
	assert_int_equal(histogram_sum(&stats), 5);
	arm(fixture);
	run(fixture, TIMED, SLOW_MS);
	expect_last(fixture, 8);
}

/* Calls that were open when it ended. */
static void test_what_returns_later_is_not_looked_at(void **state)
{
	struct fixture *fixture = *state;
	struct mt_stats stats;

	attach_to(fixture,
		  (struct trigger_config){.duration_thresh_ns = THRESH_NS, .limits.max_hits = 3},
		  timed);
	arm(fixture);
	run(fixture, TIMED_NESTED, 5);
	expect_last(fixture, 5);
	stats = stats_of(fixture);
	assert_int_equal(histogram_sum(&stats), 3);
}

static void test_what_is_watched_ends_too(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){.count_only = true, .limits.max_hits = 4},
		  hit_me);
	arm(fixture);
	run(fixture, HIT, 3);
	expect_no_hit(fixture);
	run(fixture, HIT, 3);
	expect_last(fixture, 4);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_the_first_are_let_pass),
		LIVE(test_only_slow_ones_count_as_let_pass),
		LIVE(test_not_at_the_beginning),
		LIVE(test_an_interval_between_two),
		LIVE(test_the_last_hit_ends_it),
		LIVE(test_limits_do_not_hold_the_last_back),
		LIVE(test_the_last_may_be_a_trigger),
		LIVE(test_of_durations_the_returns_are_counted),
		LIVE(test_what_returns_later_is_not_looked_at),
		LIVE(test_what_is_watched_ends_too),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
