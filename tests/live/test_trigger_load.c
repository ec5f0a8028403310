// SPDX-License-Identifier: MIT
/* Several threads that do nothing but hit: none of a million hits is lost, on this kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "mtbpf_shared.h"
#include "trigger_fixture.h"

#define TIMES 125000
#define ALL   (MANY_THREADS * TIMES)
/*
 * Task storage is not to be had for a hit that interrupts another thread inside it, on the same
 * CPU. That hit counts, but its delay is not known, nor a call's whose entry it was.
 */
#define FEW (ALL / 1000)

static void test_every_hit_counts(void **state)
{
	struct fixture *fixture = *state;
	struct mt_stats stats;

	attach_to(fixture, (struct trigger_config){.delay_thresh_ns = 3600000 * MS}, hit_me);
	arm(fixture);
	run(fixture, HIT_FROM_MANY, TIMES);
	stats = stats_of(fixture);
	assert_int_equal(stats.hits, ALL);
	assert_in_range(histogram_sum(&stats), ALL - MANY_THREADS - FEW, ALL - MANY_THREADS);
	assert_int_equal(stats.triggers, 0);
	expect_no_hit(fixture);
	assert_int_equal(count_of(fixture->entry), 0);
}

static void test_every_call_is_measured(void **state)
{
	struct fixture *fixture = *state;
	struct mt_stats stats;

	attach_to(fixture, (struct trigger_config){.duration_thresh_ns = 3600000 * MS}, timed);
	arm(fixture);
	run(fixture, TIMED_FROM_MANY, TIMES / 5);
	stats = stats_of(fixture);
	assert_int_equal(stats.hits, ALL / 5);
	assert_in_range(histogram_sum(&stats), ALL / 5 - FEW, ALL / 5);
	assert_int_equal(count_of(fixture->on_return), 0);
}

/* All of them would trigger: one does, and as many as are to pass do before. */
static void test_one_of_all_triggers(void **state)
{
	struct fixture *fixture = *state;
	struct mt_stats stats;

	attach_to(fixture, (struct trigger_config){.limits.skip = 1000}, hit_me);
	arm(fixture);
	run(fixture, HIT_FROM_MANY, TIMES / 10);
	expect_hit(fixture);
	expect_no_hit(fixture);
	stats = stats_of(fixture);
	assert_int_equal(stats.hits, ALL / 10);
	assert_int_equal(stats.triggers, 1);
	assert_int_equal(stats.let_pass, 1000);
}

/* The last of so many is one, whoever has it. */
static void test_so_many_are_looked_at(void **state)
{
	struct fixture *fixture = *state;
	struct mt_stats stats;

	attach_to(fixture, (struct trigger_config){.count_only = true, .limits.max_hits = ALL / 2},
		  hit_me);
	arm(fixture);
	run(fixture, HIT_FROM_MANY, TIMES);
	assert_int_equal(expect_hit(fixture).reason, MT_HIT_LAST);
	expect_no_hit(fixture);
	stats = stats_of(fixture);
	assert_int_equal(stats.hits, ALL / 2);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_every_hit_counts),
		LIVE(test_every_call_is_measured),
		LIVE(test_one_of_all_triggers),
		LIVE(test_so_many_are_looked_at),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
