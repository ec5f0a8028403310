// SPDX-License-Identifier: MIT
/* Decoded stacks of generated streams (tests/ptgen) against the true ones, from the first
 * instruction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ptgen_truth.h"

static void test_service(void **state)
{
	assert_true(ptgen_truth__check("-instructions 3000000 -- service -scale small") > 10000);
}

static void test_full_returns(void **state)
{
	assert_true(ptgen_truth__check(
			    "-no-ret-compression -instructions 1000000 -- service -scale small") >
		    10000);
}

static void test_cyc(void **state)
{
	assert_true(ptgen_truth__check(
			    "-timing cyc -instructions 1000000 -- service -scale small") > 10000);
}

static void test_begin_in_the_middle(void **state)
{
	assert_true(ptgen_truth__check(
			    "-skip 1000000 -instructions 1000000 -- service -scale small") > 10000);
}

static void test_wrapped(void **state)
{
	size_t n = ptgen_truth__check(
		"-snapshot-size 16K -instructions 3000000 -- service -scale small");

	assert_in_range(n, 1000, 40000);
}

static void test_threads(void **state)
{
	assert_true(ptgen_truth__check("-instructions 3000000 -- threads -scale small") > 10000);
}

static void test_signals(void **state)
{
	assert_true(ptgen_truth__check("-instructions 3000000 -- signals -scale small") > 10000);
}

static void test_tailcalls(void **state)
{
	assert_true(ptgen_truth__check("-instructions 3000000 -- tailcalls -scale small") > 10000);
}

static void test_cxx(void **state)
{
	assert_true(ptgen_truth__check("-instructions 3000000 -- cxx_service -scale small") >
		    10000);
}

/* Exceptions and longjmp, from every depth. */
static void test_throws(void **state)
{
	assert_true(ptgen_truth__check("-instructions 5000000 -- throws 300") > 10000);
}

static void test_longjmps(void **state)
{
	assert_true(ptgen_truth__check("-- longjmps 300") > 10000);
}

static void test_longjmps_static(void **state)
{
	assert_true(ptgen_truth__check("-- longjmps-static 300") > 10000);
}

/* Lazy binding, and children by vfork, which the parent waits for. */
static void test_spawns(void **state)
{
	assert_true(ptgen_truth__check("-- spawns") > 1000);
}

static void test_sqlite3(void **state)
{
	if (system("command -v sqlite3 >/dev/null")) {
		print_message("# skip: sqlite3 is missing\n");
		skip();
	}
	assert_true(ptgen_truth__check(
			    "-instructions 10000000 -- sqlite3 :memory: 'with recursive c(x) as "
			    "(select 1 "
			    "union all select x + 1 from c) select sum(x * x) from c'") > 10000);
}

static void test_a_compiler(void **state)
{
	assert_true(ptgen_truth__check(
			    "-instructions 10000000 -- $(gcc -print-prog-name=cc1) -O2 -quiet "
			    "tests/ptgen/programs/loop.c -o -") > 10000);
}

/* Stripped: cold parts of its functions lie in holes between the symbols. */
static void test_cpython(void **state)
{
	if (access("/usr/bin/python3", X_OK)) {
		print_message("# skip: /usr/bin/python3 is missing\n");
		skip();
	}
	assert_true(ptgen_truth__check("-timing cyc -instructions 30000000 -- /usr/bin/python3 -c "
				       "'while True: [str(i) for i in range(100)]'") > 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_service),	   cmocka_unit_test(test_full_returns),
		cmocka_unit_test(test_cyc),	   cmocka_unit_test(test_begin_in_the_middle),
		cmocka_unit_test(test_wrapped),	   cmocka_unit_test(test_threads),
		cmocka_unit_test(test_signals),	   cmocka_unit_test(test_tailcalls),
		cmocka_unit_test(test_cxx),	   cmocka_unit_test(test_throws),
		cmocka_unit_test(test_longjmps),   cmocka_unit_test(test_longjmps_static),
		cmocka_unit_test(test_spawns),	   cmocka_unit_test(test_sqlite3),
		cmocka_unit_test(test_a_compiler), cmocka_unit_test(test_cpython),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
