// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "util/units.h"

static void test_durations(void **state)
{
	struct threshold t = {.percent = 3};

	assert_int_equal(threshold__parse("1.5ms", &t), 0);
	assert_int_equal(t.ns, 1500000);
	assert_true(t.percent == 0);
	assert_true(threshold__is_set(&t));
	assert_int_equal(threshold__parse("0ms", &t), 0);
	assert_false(threshold__is_set(&t));
}

static void test_percentiles(void **state)
{
	struct threshold t = {.ns = 3};

	assert_int_equal(threshold__parse("p99.9", &t), 0);
	assert_int_equal(t.ns, 0);
	assert_true(t.percent > 99.89 && t.percent < 99.91);
	assert_true(threshold__is_set(&t));
	assert_int_equal(threshold__parse("p99.9999", &t), 0);
	assert_int_equal(threshold__parse("P50", &t), 0);
	assert_true(t.percent == 50);
}

static void test_what_is_neither_is_refused_and_changes_nothing(void **state)
{
	static const char *const wrong[] = {"",	    "p",    "p.5",  "p99.", "p99.9.9",
					    "p-1",  "p1e1", "p99 ", "p99%", "99.9",
					    "pnan", "p 99", "p0",   "p0.0"};
	static const char *const too_far[] = {"p100", "p99.99999", "p99999999999999999999"};
	struct threshold t = {.ns = 7};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(threshold__parse(wrong[i], &t), -EINVAL);
	for (size_t i = 0; i < sizeof(too_far) / sizeof(too_far[0]); i++)
		assert_int_equal(threshold__parse(too_far[i], &t), -ERANGE);
	assert_int_equal(t.ns, 7);
}

static void test_ten_values_lie_above_a_percentile_that_is_known(void **state)
{
	assert_int_equal(threshold__needed(50), 20);
	assert_int_equal(threshold__needed(99), 1000);
	assert_int_equal(threshold__needed(99.9), 10000);
	assert_int_equal(threshold__needed(99.9999), 10000000);
}

static void test_format(void **state)
{
	char text[THRESHOLD_TEXT_SIZE];

	assert_string_equal(threshold__format_percent(text, 99.9), "p99.9");
	assert_string_equal(threshold__format_percent(text, 99.9999), "p99.9999");
	assert_string_equal(threshold__format_percent(text, 50), "p50");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_what_is_neither_is_refused_and_changes_nothing),
		cmocka_unit_test(test_ten_values_lie_above_a_percentile_that_is_known),
		cmocka_unit_test(test_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
