// SPDX-License-Identifier: MIT
/* A threshold that is learned: from a known distribution, on this kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "trigger_fixture.h"
#include "trigger/histogram.h"

#define PLANTED_MS 4
/* One delay in so many is as long. */
#define PLANTED_EVERY 50

static void plant(const struct fixture *fixture, int times)
{
	for (int i = 0; i < times; i++) {
		run(fixture, HIT_LATE, PLANTED_MS);
		run(fixture, HIT, PLANTED_EVERY - 1);
	}
}

static uint64_t learn(const struct fixture *fixture, double percent)
{
	struct mt_stats stats = stats_of(fixture);
	struct learner learner;
	uint64_t threshold;

	learner__init(&learner, percent);
	threshold = learner__update(&learner, &stats, 0);
	trigger__set_threshold(fixture->trigger, threshold ? threshold : UINT64_MAX);
	return threshold;
}

static void test_the_planted_delays_are_found(void **state)
{
	struct fixture *fixture = *state;
	struct mt_hit hit;
	uint64_t p99;

	attach_to(fixture, (struct trigger_config){.delay_thresh_ns = UINT64_MAX}, hit_me);
	arm(fixture);
	plant(fixture, 10);
	assert_int_equal(learn(fixture, 99), 0); /* too few */
	plant(fixture, 20);
	expect_no_hit(fixture);
	assert_true(learn(fixture, 90) < PLANTED_MS * MS);
	p99 = learn(fixture, 99);
	/* As exact as the histogram: within a sixteenth. */
	assert_true(p99 >= PLANTED_MS * MS * 15 / 16);

	run(fixture, HIT_LATE, 20 * PLANTED_MS);
	hit = expect_hit(fixture);
	assert_int_equal(hit.reason, MT_HIT_DELAY);
	assert_int_equal(hit.sequence, 30 * PLANTED_EVERY + 1);
	assert_true(hit.value_ns >= 20 * PLANTED_MS * MS);
}

static void test_durations_are_learned_too(void **state)
{
	struct fixture *fixture = *state;
	uint64_t p95;

	attach_to(fixture, (struct trigger_config){.duration_thresh_ns = UINT64_MAX}, timed);
	arm(fixture);
	for (int i = 0; i < 25; i++) {
		run(fixture, TIMED, PLANTED_MS);
		for (int j = 0; j < 9; j++)
			run(fixture, TIMED, 0);
	}
	expect_no_hit(fixture);
	p95 = learn(fixture, 95);
	assert_true(p95 >= PLANTED_MS * MS * 15 / 16);
	run(fixture, TIMED, 20 * PLANTED_MS);
	assert_int_equal(expect_hit(fixture).reason, MT_HIT_DURATION);
}

static void test_the_histogram_holds_what_was_slept(void **state)
{
	struct fixture *fixture = *state;
	struct mt_stats stats;
	uint64_t fine = 0, slept = 0;

	attach_to(fixture, (struct trigger_config){.count_only = true}, hit_me);
	plant(fixture, 4);
	stats = stats_of(fixture);
	for (int i = 0; i < MT_FINE_BUCKETS; i++) {
		fine += stats.fine[i];
		if (histogram__start(i + 1) > PLANTED_MS * MS)
			slept += stats.fine[i];
	}
	assert_int_equal(fine, 4 * PLANTED_EVERY - 1);
	assert_int_equal(histogram_sum(&stats), fine);
	/* The first of the four is not behind another hit. */
	assert_true(slept >= 3 && slept < fine / 2);
}

/* Between two snapshots nothing is attached, and hits go unseen. */
static void test_what_began_before_it_was_armed_is_not_learned(void **state)
{
	struct fixture *fixture = *state;
	struct mt_stats stats;

	attach_to(fixture, (struct trigger_config){.delay_thresh_ns = UINT64_MAX}, hit_me);
	arm(fixture);
	run(fixture, HIT, 2);
	sleep_ms(SLOW_MS);
	arm(fixture);
	run(fixture, HIT, 2);
	stats = stats_of(fixture);
	assert_int_equal(histogram_sum(&stats), 2);
	assert_true(stats.max_ns < SLOW_MS * MS);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_the_planted_delays_are_found),
		LIVE(test_durations_are_learned_too),
		LIVE(test_the_histogram_holds_what_was_slept),
		LIVE(test_what_began_before_it_was_armed_is_not_learned),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
