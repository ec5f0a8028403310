// SPDX-License-Identifier: MIT
#include "util/units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdio.h>

/* What an error must leave alone. */
#define UNTOUCHED 0xabcdu

struct parse_case {
	const char *text;
	int err;
	uint64_t value;
};

static void check(int (*parse)(const char *, uint64_t *), const struct parse_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = UNTOUCHED;
		int err = parse(cases[i].text, &value);

		if (err != cases[i].err || value != (err ? UNTOUCHED : cases[i].value))
			fail_msg("'%s': %d, %ju; not %d, %ju", cases[i].text, err, (uintmax_t)value,
				 cases[i].err, (uintmax_t)cases[i].value);
	}
}

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void test_durations(void **state)
{
	static const struct parse_case cases[] = {
		{"800ns", 0, 800},
		{"250us", 0, 250000},
		{"250\u00b5s", 0, 250000},
		{"10ms", 0, 10000000},
		{"1.5s", 0, 1500000000},
		{"10min", 0, 600000000000},
		{"1.5h", 0, 5400000000000},
		{"0.1us", 0, 100},
		{"0ms", 0, 0},
		{"007ms", 0, 7000000},
		{"10.0 ms", 0, 10000000},
		/* Not representable in binary, yet exact. */
		{"0.3s", 0, 300000000},
		{"4.35s", 0, 4350000000},
		{"1.000000001s", 0, 1000000001},
		{"1234567890.123456789s", 0, 1234567890123456789},
		/* To the nearest. */
		{"0.0004us", 0, 0},
		{"0.0005us", 0, 1},
		{"1.99999999999999999999999999999999s", 0, 2000000000},
	};

	check(units__parse_duration, cases, N(cases));
}

static void test_bad_durations(void **state)
{
	static const struct parse_case cases[] = {
		{"10", -EINVAL, 0},    {"", -EINVAL, 0},       {"ms", -EINVAL, 0},
		{"x", -EINVAL, 0},     {"-1ms", -EINVAL, 0},   {"+1ms", -EINVAL, 0},
		{" 1ms", -EINVAL, 0},  {"1ms ", -EINVAL, 0},   {"1  ms", -EINVAL, 0},
		{"10 ", -EINVAL, 0},   {"1.ms", -EINVAL, 0},   {".5ms", -EINVAL, 0},
		{".", -EINVAL, 0},     {"1.2.3s", -EINVAL, 0}, {"1,5s", -EINVAL, 0},
		{"1e3ns", -EINVAL, 0}, {"0x10ns", -EINVAL, 0}, {"10MS", -EINVAL, 0},
		{"10m", -EINVAL, 0},   {"10mss", -EINVAL, 0},  {"nans", -EINVAL, 0},
		{"infs", -EINVAL, 0},
	};

	check(units__parse_duration, cases, N(cases));
}

static void test_too_large(void **state)
{
	static const struct parse_case durations[] = {
		{"9223372036854775807ns", 0, INT64_MAX},
		{"9223372036854775808ns", -ERANGE, 0},
		{"9223372036.854775807s", 0, INT64_MAX},
		{"9223372036.854775808s", -ERANGE, 0},
		{"18446744073709551615s", -ERANGE, 0},
		{"18446744073709551616ns", -ERANGE, 0},
		{"18446744073709551620ns", -ERANGE, 0},
		{"99999999999999999999999999999999s", -ERANGE, 0},
		/* Too large, but first of all not a duration. */
		{"99999999999999999999999999999999", -EINVAL, 0},
	};
	static const struct parse_case sizes[] = {
		{"8388607T", 0, 8388607ull << 40},
		{"8388608T", -ERANGE, 0},
		{"9223372036854775808", -ERANGE, 0},
	};

	check(units__parse_duration, durations, N(durations));
	check(units__parse_size, sizes, N(sizes));
}

static void test_sizes(void **state)
{
	static const struct parse_case cases[] = {
		{"0", 0, 0},
		{"4096", 0, 4096},
		{"4096B", 0, 4096},
		{"256K", 0, 256 << 10},
		{"256k", 0, 256 << 10},
		{"256KB", 0, 256 << 10},
		{"256KiB", 0, 256 << 10},
		{"4M", 0, 4 << 20},
		{"4mib", 0, 4 << 20},
		{"1G", 0, 1 << 30},
		{"2TB", 0, 2ull << 40},
		{"1.5M", 0, 3 << 19},
		{"4.0 KiB", 0, 4096},
		{"", -EINVAL, 0},
		{"K", -EINVAL, 0},
		{"-4K", -EINVAL, 0},
		{"4X", -EINVAL, 0},
		{"4Ki", -EINVAL, 0},
		{"4KBs", -EINVAL, 0},
		{"4096 ", -EINVAL, 0},
	};

	check(units__parse_size, cases, N(cases));
}

static void test_format_duration(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0 ns"},
		{823, "823 ns"},
		{999, "999 ns"},
		{1000, "1.00 us"},
		{12345, "12.3 us"},
		{123456, "123 us"},
		{4560000, "4.56 ms"},
		{1200000000, "1.20 s"},
		{59900000000, "59.9 s"},
		{1234000000000, "1234 s"},
		/* What rounds up goes on in the next step of precision, or the next unit. */
		{9994, "9.99 us"},
		{9995, "10.0 us"},
		{99950, "100 us"},
		{999499, "999 us"},
		{999500, "1.00 ms"},
		{999999999, "1.00 s"},
		{999999999999, "1000 s"},
		{UINT64_MAX, "18446744074 s"},
	};
	char buf[UNITS_TEXT_SIZE];

	for (size_t i = 0; i < N(cases); i++)
		assert_string_equal(units__format_duration(buf, cases[i].ns), cases[i].text);
}

static void test_format_size(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{512, "512 B"},
		{1023, "1023 B"},
		{4096, "4.0 KiB"},
		{1258291, "1.2 MiB"},
		{256 << 10, "256.0 KiB"},
		{(1 << 20) - 1, "1.0 MiB"},
		{(1 << 30) - 1, "1.0 GiB"},
		{3ull << 40, "3.0 TiB"},
		{UINT64_MAX, "16.0 EiB"},
	};
	char buf[UNITS_TEXT_SIZE];

	for (size_t i = 0; i < N(cases); i++)
		assert_string_equal(units__format_size(buf, cases[i].bytes), cases[i].text);
}

static void test_reads_back_what_it_prints(void **state)
{
	char buf[UNITS_TEXT_SIZE];
	uint64_t back;

	for (uint64_t n = 1; n < INT64_MAX / 10; n *= 10) {
		assert_int_equal(units__parse_duration(units__format_duration(buf, n), &back), 0);
		assert_int_equal(back, n);
	}
	for (uint64_t n = 1; n < 1ull << 50; n *= 2) {
		assert_int_equal(units__parse_size(units__format_size(buf, n), &back), 0);
		assert_int_equal(back, n);
	}
}

static void test_percents(void **state)
{
	static const char *const bad[] = {"1", "%", "", "-1%", "1%%", "1 percent"};
	uint64_t ppm;

	assert_int_equal(units__parse_percent("1%", &ppm), 0);
	assert_int_equal(ppm, 10000);
	assert_int_equal(units__parse_percent("0.25 %", &ppm), 0);
	assert_int_equal(ppm, 2500);
	assert_int_equal(units__parse_percent("100%", &ppm), 0);
	assert_int_equal(units__parse_percent("100.1%", &ppm), -ERANGE);
	for (size_t i = 0; i < N(bad); i++)
		assert_int_equal(units__parse_percent(bad[i], &ppm), -EINVAL);
}

static void test_moments(void **state)
{
	static const char *const bad[] = {"", "2026-11-21", "2026-11-21T10:00:00.123",
					  "2026-13-21T10:00:00.123Z", "2026-11-21T10:00:00.12Z"};
	char buf[UNITS_MOMENT_SIZE];
	uint64_t ms;

	assert_string_equal(units__format_moment(buf, 1795255200123), "2026-11-21T10:00:00.123Z");
	assert_string_equal(units__format_moment(buf, 0), "1970-01-01T00:00:00.000Z");
	assert_int_equal(units__parse_moment("2026-11-21T10:00:00.123Z.mtbpf", &ms), 0);
	assert_int_equal(ms, 1795255200123);
	for (size_t i = 0; i < N(bad); i++)
		assert_int_equal(units__parse_moment(bad[i], &ms), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_bad_durations),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_percents),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_format_duration),
		cmocka_unit_test(test_format_size),
		cmocka_unit_test(test_reads_back_what_it_prints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
