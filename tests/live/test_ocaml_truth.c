// SPDX-License-Identifier: MIT
// test_tags=slow
/* OCaml programs' exceptions, from every depth and through C, against the true stack. */
#include "ptgen_truth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* Each way out of a function on its own: tests/ptgen/programs/ocaml/raises.ml, `parts`. */
enum {
	DEEP,
	CHOSEN,
	OWN,
	AGAIN,
	ITER,
	FIND,
	C,
	TURNS,
	PROTECT,
	CHECKS,
	SWITCH,
	ALLOC,
	SIGNAL,
	PARTS
};

/* The version of the compiler that made the program; 0: it was not made. */
static int compiler_version(void)
{
	const char *folder = getenv("O");
	char path[256];
	FILE *out;
	int major = 0;

	folder = folder ? folder : "build";
	snprintf(path, sizeof(path), "%s/tests/ptgen/programs/raises", folder);
	if (access(path, X_OK))
		return 0;
	strcat(path, " version");
	out = popen(path, "r");
	if (!out || fscanf(out, "%d.", &major) != 1)
		fail_msg("%s says no version", path);
	pclose(out);
	return major;
}

static void need_ocaml(void)
{
	int version = compiler_version();

	if (version == 4)
		return;
	if (version)
		print_message("# skip: OCaml %d runs C on another stack: how deep it is on both, "
			      "nobody logs\n",
			      version);
	else
		print_message("# skip: ocamlopt was missing (package ocaml-nox)\n");
	skip();
}

static void check_part(int part, const char *environment)
{
	char line[256];
	size_t n;

	need_ocaml();
	snprintf(line, sizeof(line), "-- raises 1000 %d", part);
	setenv("OCAMLRUNPARAM", environment, 1);
	n = ptgen_truth__check(line);
	unsetenv("OCAMLRUNPARAM");
	assert_true(n > 100000);
}

static void test_parts(void **state)
{
	for (int part = 0; part < PARTS; part++)
		check_part(part, "");
}

static void test_parts_with_backtraces(void **state)
{
	for (int part = 0; part < PARTS; part++)
		check_part(part, "b");
}

static void test_all(void **state)
{
	need_ocaml();
	assert_true(ptgen_truth__check("-- raises 1000") > 2000000);
}

static void test_all_with_backtraces(void **state)
{
	need_ocaml();
	setenv("OCAMLRUNPARAM", "b", 1);
	assert_true(ptgen_truth__check("-- raises 500") > 1000000);
	unsetenv("OCAMLRUNPARAM");
}

/* Compiled without -g: each raise is a jump of its own. */
static void test_notrace(void **state)
{
	need_ocaml();
	assert_true(ptgen_truth__check("-- raises-notrace 1000") > 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),	cmocka_unit_test(test_parts_with_backtraces),
		cmocka_unit_test(test_all),	cmocka_unit_test(test_all_with_backtraces),
		cmocka_unit_test(test_notrace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
