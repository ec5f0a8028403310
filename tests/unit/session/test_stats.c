// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "trigger/histogram.h"
#include "trigger/trigger.h"

/* The first bucket of an octave from MT_HIST_SUB_BITS on. */
#define FIRST_OF(octave) (((octave)-MT_HIST_SUB_BITS + 1) * MT_HIST_SUBS)

static void test_empty_histogram_is_zero(void **state)
{
	struct mt_stats stats = {.max_ns = 99};

	assert_int_equal(mt_stats__percentile(&stats, 50), 0);
	assert_int_equal(mt_stats__percentile(&stats, 100), 0);
}

static void test_interpolates_inside_a_bucket(void **state)
{
	struct mt_stats stats = {.max_ns = 2047};

	stats.fine[FIRST_OF(10)] = 8; /* [1024, 1024 + 64) */
	assert_int_equal(mt_stats__percentile(&stats, 0), 1024);
	assert_int_equal(mt_stats__percentile(&stats, 25), 1024 + 16);
	assert_int_equal(mt_stats__percentile(&stats, 50), 1024 + 32);
	assert_int_equal(mt_stats__percentile(&stats, 100), 1024 + 64);
}

static void test_finds_the_bucket(void **state)
{
	struct mt_stats stats = {.max_ns = 1 << 21};

	stats.fine[FIRST_OF(5)] = 90; /* 32, 33 */
	stats.fine[FIRST_OF(20)] = 10;
	assert_in_range(mt_stats__percentile(&stats, 50), 32, 33);
	assert_in_range(mt_stats__percentile(&stats, 89), 32, 33);
	assert_int_equal(mt_stats__percentile(&stats, 90), 34);
	assert_in_range(mt_stats__percentile(&stats, 91), 1 << 20, (1 << 20) + (1 << 16) - 1);
	assert_int_equal(mt_stats__percentile(&stats, 95), (1 << 20) + (1 << 15));
}

static void test_never_above_the_largest_value(void **state)
{
	struct mt_stats stats = {.max_ns = 1030};

	stats.fine[FIRST_OF(10)] = 4;
	assert_int_equal(mt_stats__percentile(&stats, 99), 1030);
}

static void test_finds_the_gap_below_the_outliers(void **state)
{
	struct mt_stats stats = {.hist = {[14] = 638, [15] = 459, [17] = 1, [26] = 2}};
	uint64_t above = 0;

	/* 18 to 25 are empty. */
	assert_int_equal(mt_stats__gap(&stats, &above), 1 << 22);
	assert_int_equal(above, 2);
	/* Outliers in two groups: the longest run counts. */
	stats.hist[20] = 3;
	assert_int_equal(mt_stats__gap(&stats, &above), 1 << 23);
	assert_int_equal(above, 2);
	/* A run of two. */
	stats.hist[23] = 1;
	assert_int_equal(mt_stats__gap(&stats, &above), 0);
	/* Two modes: more than a tenth is above. */
	stats = (struct mt_stats){.hist = {[14] = 80, [26] = 20}};
	assert_int_equal(mt_stats__gap(&stats, &above), 0);
	stats = (struct mt_stats){.hist = {[26] = 20}};
	assert_int_equal(mt_stats__gap(&stats, &above), 0);
	stats = (struct mt_stats){0};
	assert_int_equal(mt_stats__gap(&stats, &above), 0);
}

static void test_first_bucket_starts_at_zero(void **state)
{
	struct mt_stats stats = {.max_ns = 1};

	stats.fine[0] = stats.fine[1] = 2;
	assert_int_equal(mt_stats__percentile(&stats, 0), 0);
	assert_int_equal(mt_stats__percentile(&stats, 50), 1);
}

static void test_last_bucket_and_odd_percents(void **state)
{
	struct mt_stats stats = {.max_ns = UINT64_MAX};

	stats.fine[MT_FINE_BUCKETS - 1] = 1;
	assert_int_equal(mt_stats__percentile(&stats, -5), 31ull << 43);
	assert_int_equal(mt_stats__percentile(&stats, 200), 1ull << 48);
}

/* Each value belongs to one bucket, none lies between two, and an octave is what log2 says. */
static void test_buckets_join(void **state)
{
	assert_int_equal(histogram__start(0), 0);
	assert_int_equal(histogram__start(15), 15);
	assert_int_equal(histogram__start(16), 16);
	assert_int_equal(histogram__start(32), 32);
	assert_int_equal(histogram__start(33), 34);
	assert_int_equal(histogram__start(MT_FINE_BUCKETS), 1ull << MT_HIST_OCTAVES);
	for (int i = 1; i < MT_FINE_BUCKETS; i++) {
		uint64_t start = histogram__start(i), width = histogram__start(i + 1) - start;
		int octave = histogram__octave(i);

		assert_true(start >= 1ull << octave && start < 2ull << octave);
		assert_true(width == 1 || width * MT_HIST_SUBS <= start);
	}
	assert_int_equal(histogram__octave(0), 0);
	assert_int_equal(histogram__octave(MT_FINE_BUCKETS - 1), MT_HIST_OCTAVES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_histogram_is_zero),
		cmocka_unit_test(test_interpolates_inside_a_bucket),
		cmocka_unit_test(test_finds_the_bucket),
		cmocka_unit_test(test_never_above_the_largest_value),
		cmocka_unit_test(test_finds_the_gap_below_the_outliers),
		cmocka_unit_test(test_first_bucket_starts_at_zero),
		cmocka_unit_test(test_last_bucket_and_odd_percents),
		cmocka_unit_test(test_buckets_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
