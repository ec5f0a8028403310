// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trigger/histogram.h"

#define S     1000000000ull
#define SLOW  500 /* buckets */
#define QUICK 200
#define BOTH  300

static uint64_t start(int bucket)
{
	return histogram__start(bucket);
}

static void test_nothing_is_known_before_there_are_enough(void **state)
{
	struct mt_stats stats = {0};
	struct learner learner;

	learner__init(&learner, 99);
	assert_int_equal(learner.needed, 1000);
	stats.fine[QUICK] = 999;
	assert_int_equal(learner__update(&learner, &stats, S), 0);
	assert_int_equal(learner__update(&learner, &stats, S), 0);
	stats.fine[QUICK]++;
	assert_int_not_equal(learner__update(&learner, &stats, S), 0);
	assert_int_equal(learner.learned, 1000);
}

/* One in fifty is slow: the 99th percentile is one of these, the 97th is not. */
static void test_a_known_distribution(void **state)
{
	struct mt_stats stats = {0};
	struct learner p99, p97;

	learner__init(&p99, 99);
	learner__init(&p97, 97);
	stats.fine[QUICK] = 9800;
	stats.fine[SLOW] = 200;
	assert_in_range(learner__update(&p99, &stats, S), start(SLOW), start(SLOW + 1));
	assert_in_range(learner__update(&p97, &stats, S), start(QUICK), start(QUICK + 1));
}

/* What a minute ago was usual counts half of what is now; ten minutes later next to nothing. */
static void test_it_is_kept_current(void **state)
{
	struct mt_stats stats = {0};
	struct learner learner;

	learner__init(&learner, 90);
	stats.fine[SLOW] = 1000000;
	assert_in_range(learner__update(&learner, &stats, S), start(SLOW), start(SLOW + 1));
	for (int s = 0; s < 600; s++) {
		stats.fine[QUICK] += 20000;
		learner__update(&learner, &stats, S);
	}
	assert_in_range(learner__update(&learner, &stats, S), start(QUICK), start(QUICK + 1));
	assert_true(learner.counts[SLOW] > 0 && learner.counts[SLOW] < 1000000 / 1000);
}

/* A service that sleeps for a day has forgotten nothing that it still needs. */
static void test_enough_is_kept_however_old(void **state)
{
	struct mt_stats stats = {0};
	struct learner learner;

	learner__init(&learner, 99);
	stats.fine[QUICK] = 500000;
	stats.fine[BOTH] = 500000;
	learner__update(&learner, &stats, S);
	learner__update(&learner, &stats, 86400 * S);
	assert_in_range(learner.counts[QUICK], 10 * learner.needed / 2 - 1,
			10 * learner.needed / 2 + 1);
	assert_in_range(learner__update(&learner, &stats, 86400 * S), start(BOTH), start(BOTH + 1));
}

static void test_zero_is_no_threshold(void **state)
{
	struct mt_stats stats = {0};
	struct learner learner;

	learner__init(&learner, 50);
	stats.fine[0] = 100;
	assert_int_equal(learner__update(&learner, &stats, S), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_known_before_there_are_enough),
		cmocka_unit_test(test_a_known_distribution),
		cmocka_unit_test(test_it_is_kept_current),
		cmocka_unit_test(test_enough_is_kept_however_old),
		cmocka_unit_test(test_zero_is_no_threshold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
