// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "target/process.h"

static void test_what_the_kernel_writes(void **state)
{
	static const struct {
		const char *text;
		int64_t offset_ns;
	} cases[] = {
		{"monotonic           0         0\nboottime            0         0\n", 0},
		{"monotonic      864000         5\nboottime      7         8\n", 864000000000005},
		{"monotonic          -2 500000000\nboottime      7         8\n", -1500000000},
		{"boottime            7         8\n", 0},
		{"monotonic", 0},
		{"", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(time_namespace__parse(cases[i].text), cases[i].offset_ns);
}

static void test_a_process_that_is_gone_has_none(void **state)
{
	assert_int_equal(time_namespace__offset_ns(0x7fffffff), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_kernel_writes),
		cmocka_unit_test(test_a_process_that_is_gone_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
