// SPDX-License-Identifier: MIT
#include "keep/folder.h"
#include "keep/keeper.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#define MINUTE_NS 60000000000ull

static void test_as_many_as_there_are_tokens_at_once(void **state)
{
	struct quota quota;

	assert_int_equal(quota__init(&quota, 3), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(quota__next_ns(&quota), 0);
		quota__spend(&quota, 1000 + (uint64_t)i);
	}
	assert_int_equal(quota__next_ns(&quota), 1000 + QUOTA_SPAN_NS);
	quota__fini(&quota);
}

/* Whatever hour one looks at: from just behind one capture to an hour later. */
static void test_no_hour_has_more_than_its_tokens(void **state)
{
	enum { N = 200, TOKENS = 7 };
	uint64_t spent[N], now = 1;
	struct quota quota;

	assert_int_equal(quota__init(&quota, TOKENS), 0);
	for (int i = 0; i < N; i++) {
		uint64_t next = quota__next_ns(&quota);

		now += (uint64_t)(i % 11) * MINUTE_NS;
		if (next > now)
			now = next;
		quota__spend(&quota, now);
		spent[i] = now;
		if (i >= TOKENS)
			assert_true(spent[i] - spent[i - TOKENS] >= QUOTA_SPAN_NS);
	}
	/* And it is no stricter than that. */
	assert_true(spent[N - 1] < (N / TOKENS + 1) * 2 * QUOTA_SPAN_NS);
	quota__fini(&quota);
}

static void test_none_is_no_limit(void **state)
{
	struct quota quota;

	assert_int_equal(quota__init(&quota, 0), 0);
	for (uint64_t i = 1; i < 1000; i++) {
		quota__spend(&quota, i);
		assert_int_equal(quota__next_ns(&quota), 0);
	}
	quota__fini(&quota);
}

static void test_names_tell_process_and_time(void **state)
{
	char name[64];
	uint64_t ms = 0;

	assert_int_equal(recording_name__format(name, sizeof(name), "web", 1795255200123), 0);
	assert_string_equal(name, "web-2026-11-21T10:00:00.123Z.mtbpf");
	assert_true(recording_name__parse(name, &ms));
	assert_int_equal(ms, 1795255200123);
}

static void test_names_are_harmless(void **state)
{
	char name[64];
	uint64_t ms;

	assert_int_equal(recording_name__format(name, sizeof(name), ".a/b c\n\xff-d.e", 0), 0);
	assert_string_equal(name, "_a_b_c__-d.e-1970-01-01T00:00:00.000Z.mtbpf");
	assert_true(recording_name__parse(name, &ms));
	assert_int_equal(recording_name__format(name, 30, "web", 0), -ENAMETOOLONG);
}

static void test_other_names_are_not_ours(void **state)
{
	static const char *const others[] = {
		"web-2026-11-21T10:00:00.123Z",
		"web-2026-11-21T10:00:00.123Z.mtbpf.old",
		".web-2026-11-21T10:00:00.123Z.mtbpf",
		"-2026-11-21T10:00:00.123Z.mtbpf",
		"2026-11-21T10:00:00.123Z.mtbpf",
		"web.2026-11-21T10:00:00.123Z.mtbpf",
		"web-2026-13-21T10:00:00.123Z.mtbpf",
		"web-2026-11-31T10:00:00.123Z.mtbpf",
		"web-2026-11-21T24:00:00.123Z.mtbpf",
		"web-2026-11-21T10:00:00.1234.mtbpf",
		"web-2026-11-21T10:00:00.-23Z.mtbpf",
		"web-2026-11-21 10:00:00.123Z.mtbpf",
		"slow.mtbpf",
		"",
	};
	uint64_t ms;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (recording_name__parse(others[i], &ms))
			fail_msg("%s", others[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_many_as_there_are_tokens_at_once),
		cmocka_unit_test(test_no_hour_has_more_than_its_tokens),
		cmocka_unit_test(test_none_is_no_limit),
		cmocka_unit_test(test_names_tell_process_and_time),
		cmocka_unit_test(test_names_are_harmless),
		cmocka_unit_test(test_other_names_are_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
