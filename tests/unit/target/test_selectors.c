// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "session/probe/probes.h"
#include "stderr_capture.h"

/* Splits one text, and compares with names that a '|' separates. */
static void assert_split(const char *text, const char *expected)
{
	struct option_list texts = {.v = {text}, .n = 1};
	struct selectors selectors = {0};
	char joined[256] = "";

	assert_int_equal(selectors__split(&selectors, &texts, "-symbol"), 0);
	for (size_t i = 0; i < selectors.names.n; i++) {
		strcat(joined, i ? "|" : "");
		strcat(joined, selectors.names.v[i]);
	}
	assert_string_equal(joined, expected);
	selectors__fini(&selectors);
}

static void test_commas_separate(void **state)
{
	assert_split("f", "f");
	assert_split("f,g", "f|g");
	assert_split("libm.so.6:exp,main,f+0x10", "libm.so.6:exp|main|f+0x10");
	assert_split("", "");
}

static void test_commas_within_a_name_do_not(void **state)
{
	assert_split("ns::f(int, char)", "ns::f(int, char)");
	assert_split("f(int, char),g", "f(int, char)|g");
	assert_split("std::map<int, std::pair<a, b>>::at(x),g",
		     "std::map<int, std::pair<a, b>>::at(x)|g");
	assert_split("f::{lambda(int, int)#1},g", "f::{lambda(int, int)#1}|g");
	assert_split("operator<", "operator<");
	assert_split("ns::operator,(a, b)", "ns::operator,(a, b)");
}

static void test_each_time_adds(void **state)
{
	struct option_list texts = {.v = {"a,b", "c"}, .n = 2};
	struct selectors selectors = {0};

	assert_int_equal(selectors__split(&selectors, &texts, "-symbol"), 0);
	assert_int_equal(selectors.names.n, 3);
	assert_string_equal(selectors.names.v[2], "c");
	selectors__fini(&selectors);
}

static void test_an_empty_name_is_refused(void **state)
{
	static const char *const wrong[] = {"a,", ",a", "a,,b", ","};
	struct stderr_capture capture;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct option_list texts = {.v = {wrong[i]}, .n = 1};
		struct selectors selectors = {0};

		stderr_capture__begin(&capture);
		assert_int_equal(selectors__split(&selectors, &texts, "-symbol"), -EINVAL);
		assert_non_null(strstr(stderr_capture__end(&capture), "an empty name"));
		selectors__fini(&selectors);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commas_separate),
		cmocka_unit_test(test_commas_within_a_name_do_not),
		cmocka_unit_test(test_each_time_adds),
		cmocka_unit_test(test_an_empty_name_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
