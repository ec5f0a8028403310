// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "session/progress.h"
#include "stderr_capture.h"

static void assert_status(struct status_view view, const char *expected)
{
	char text[STATUS_TEXT_SIZE];

	assert_ptr_equal(status__format(text, &view), text);
	assert_string_equal(text, expected);
}

static void test_everything(void **state)
{
	assert_status((struct status_view){.hits = 1204,
					   .hits_per_s = 52.14,
					   .delay_ns = {61000000, 80000000, 83000000},
					   .threshold_ns = 400000000},
		      "1204 hits  52.1/s  p50 61.0 ms  p99 80.0 ms  max 83.0 ms  threshold 400 ms");
}

static void test_what_is_not_known_is_left_out(void **state)
{
	assert_status((struct status_view){0}, "0 hits  0.0/s");
	assert_status((struct status_view){.hits = 1, .threshold_ns = 1000},
		      "1 hits  0.0/s  threshold 1.00 us");
	assert_status((struct status_view){.hits = 9, .let_pass = 3},
		      "9 hits  0.0/s  3 skipped by limits");
	assert_status((struct status_view){.hits = 2, .delay_ns = {1, 2, 3}},
		      "2 hits  0.0/s  p50 1 ns  p99 2 ns  max 3 ns");
}

static void test_a_percentile_says_what_it_is_known_from(void **state)
{
	struct status_view view = {.hits = 1300, .percent = 99.9, .learned = 1203, .needed = 10000};

	assert_status(view, "1300 hits  0.0/s  learning p99.9: 1203 of 10000");
	view.threshold_ns = 12340000;
	view.learned = 10034;
	assert_status(view, "1300 hits  0.0/s  threshold 12.3 ms (p99.9 of 10034)");
}

/* Whatever it is told, it stays in its buffer. */
static void test_the_largest_numbers_fit(void **state)
{
	struct status_view view = {.hits = UINT64_MAX,
				   .delay_ns = {UINT64_MAX, UINT64_MAX, UINT64_MAX},
				   .threshold_ns = UINT64_MAX,
				   .percent = 99.9999,
				   .learned = UINT64_MAX};
	static const double rates[] = {DBL_MAX, -DBL_MAX, INFINITY, NAN, 1e9};
	struct {
		char text[STATUS_TEXT_SIZE], behind[64];
	} buf;

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		memset(&buf, 'x', sizeof(buf));
		view.hits_per_s = rates[i];
		status__format(buf.text, &view);
		assert_true(strlen(buf.text) < sizeof(buf.text));
		for (size_t j = 0; j < sizeof(buf.behind); j++)
			assert_int_equal(buf.behind[j], 'x');
	}
	assert_non_null(strstr(buf.text, "  threshold "));
}

static void test_nothing_is_drawn_where_there_is_no_terminal(void **state)
{
	struct status_view view = {.hits = 1};
	struct stderr_capture capture;

	stderr_capture__begin(&capture);
	status__show(&view);
	log__end_line();
	assert_string_equal(stderr_capture__end(&capture), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_what_is_not_known_is_left_out),
		cmocka_unit_test(test_a_percentile_says_what_it_is_known_from),
		cmocka_unit_test(test_the_largest_numbers_fit),
		cmocka_unit_test(test_nothing_is_drawn_where_there_is_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
