// SPDX-License-Identifier: MIT
/* Exceptions and panics of real programs: after each call and return the stack is as deep as it
 * was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ptgen_truth.h"

static void test_exceptions(void **state)
{
	assert_true(ptgen_truth__check("-- exceptions 20") > 100000);
}

static void test_exceptions_with_full_returns(void **state)
{
	assert_true(ptgen_truth__check("-no-ret-compression -timing cyc -- exceptions 10") >
		    100000);
}

/* Where a function is in two parts, no symbol says so. */
static void test_exceptions_without_symbols(void **state)
{
	assert_true(ptgen_truth__check("-- exceptions-stripped 20") > 100000);
}

static void test_panics(void **state)
{
	const char *folder = getenv("O");
	char line[256];

	snprintf(line, sizeof(line), "test -e %s/tests/ptgen/programs/panics",
		 folder ? folder : "build");
	if (system(line)) {
		print_message("# skip: panics was not built: rustc is missing\n");
		skip();
	}
	assert_true(ptgen_truth__check("-- panics 20") > 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exceptions),
		cmocka_unit_test(test_exceptions_with_full_returns),
		cmocka_unit_test(test_exceptions_without_symbols),
		cmocka_unit_test(test_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
