// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "trigger/trigger.h"

static void test_empty_histogram_is_zero(void **state)
{
	struct mt_stats stats = {.max_ns = 99};

	assert_int_equal(mt_stats__percentile(&stats, 50), 0);
	assert_int_equal(mt_stats__percentile(&stats, 100), 0);
}

static void test_interpolates_inside_a_bucket(void **state)
{
	struct mt_stats stats = {.max_ns = 2047};

	stats.hist[10] = 8; /* [1024, 2048) */
	assert_int_equal(mt_stats__percentile(&stats, 0), 1024);
	assert_int_equal(mt_stats__percentile(&stats, 25), 1024 + 256);
	assert_int_equal(mt_stats__percentile(&stats, 50), 1024 + 512);
	assert_int_equal(mt_stats__percentile(&stats, 100), 2047);
}

static void test_finds_the_bucket(void **state)
{
	struct mt_stats stats = {.max_ns = 1 << 21};

	stats.hist[4] = 90;
	stats.hist[20] = 10;
	assert_in_range(mt_stats__percentile(&stats, 50), 16, 31);
	assert_in_range(mt_stats__percentile(&stats, 89), 16, 31);
	assert_int_equal(mt_stats__percentile(&stats, 90), 32);
	assert_in_range(mt_stats__percentile(&stats, 91), 1 << 20, (1 << 21) - 1);
	assert_int_equal(mt_stats__percentile(&stats, 95), (1 << 20) + (1 << 19));
}

static void test_never_above_the_largest_value(void **state)
{
	struct mt_stats stats = {.max_ns = 1100};

	stats.hist[10] = 4;
	assert_int_equal(mt_stats__percentile(&stats, 99), 1100);
}

static void test_first_bucket_starts_at_zero(void **state)
{
	struct mt_stats stats = {.max_ns = 1};

	stats.hist[0] = 2;
	assert_int_equal(mt_stats__percentile(&stats, 0), 0);
	assert_int_equal(mt_stats__percentile(&stats, 50), 1);
}

static void test_last_bucket_and_odd_percents(void **state)
{
	struct mt_stats stats = {.max_ns = UINT64_MAX};

	stats.hist[MT_HIST_BUCKETS - 1] = 1;
	assert_int_equal(mt_stats__percentile(&stats, -5), 1ull << 47);
	assert_int_equal(mt_stats__percentile(&stats, 200), 1ull << 48);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_histogram_is_zero),
		cmocka_unit_test(test_interpolates_inside_a_bucket),
		cmocka_unit_test(test_finds_the_bucket),
		cmocka_unit_test(test_never_above_the_largest_value),
		cmocka_unit_test(test_first_bucket_starts_at_zero),
		cmocka_unit_test(test_last_bucket_and_odd_percents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
