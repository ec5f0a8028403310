// SPDX-License-Identifier: MIT
#include "check/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <fcntl.h>

static size_t count_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Whatever this machine has: every result says why, and nothing stays open. */
static void test_this_machine(void **state)
{
	size_t before = count_fds();
	struct check_report *report = check_report__new();

	assert_non_null(report);
	assert_int_equal(count_fds(), before);
	for (size_t i = 0; i < report->n; i++) {
		assert_true(report->results[i].reason[0] != '\0');
		if (report->results[i].state == CHECK_OK)
			assert_string_equal(report->results[i].remedy, "");
	}
	assert_string_equal(report->results[report->n - 1].name, "attach");
	assert_int_equal(report->results[report->n - 1].state == CHECK_OK,
			 check_report__good(report));
	check_report__free(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
