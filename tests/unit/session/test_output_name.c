// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "pipeline/output_name.h"
#include "said.h"
#include "stderr_capture.h"

static void assert_names(const char *output, const char *trace, const char *recording)
{
	struct output_names names;

	assert_int_equal(output_names__from(&names, output), 0);
	assert_string_equal(names.trace, trace);
	assert_string_equal(names.recording, recording);
}

static int refuse(const char *output, struct stderr_capture *said)
{
	struct output_names names;
	int err;

	stderr_capture__begin(said);
	err = output_names__from(&names, output);
	stderr_capture__end(said);
	return err;
}

static void test_the_other_lies_beside_it(void **state)
{
	assert_names("x.fxt", "x.fxt", "x.mtbpf");
	assert_names("x.fxt.gz", "x.fxt.gz", "x.mtbpf");
	assert_names("/a.b/x.fxt.zst", "/a.b/x.fxt.zst", "/a.b/x.mtbpf");
	assert_names("x.mtbpf", "x.fxt.gz", "x.mtbpf");
	assert_names("x.fxt.mtbpf", "x.fxt.fxt.gz", "x.fxt.mtbpf");
}

static void test_no_name_is_a_default(void **state)
{
	assert_names(NULL, "trace.fxt.gz", "trace.mtbpf");
}

static void test_other_names_are_refused(void **state)
{
	static const char *const names[] = {"",	    "x",       "x.json",    "x.fxt.bz2",
					    ".fxt", ".mtbpf",  "x.mtbpf/",  "x.FXT",
					    "fxt",  "/a/.fxt", "/a/.mtbpf", ".fxt.gz"};
	struct stderr_capture said;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(refuse(names[i], &said), -EINVAL);
		ASSERT_COMPLAINT(said.text);
		ASSERT_ERROR(said.text, TEXT_not_an_output_name, names[i]);
	}
}

static void test_names_that_are_too_long(void **state)
{
	struct stderr_capture said;
	char name[PATH_MAX + 10];

	memset(name, 'x', sizeof(name));
	strcpy(name + PATH_MAX - 6, ".fxt");
	assert_int_equal(refuse(name, &said), -ENAMETOOLONG);
	assert_non_null(strstr(said.text, "hint: "));
	/* What stands beside it fits as well. */
	memset(name, 'x', sizeof(name));
	strcpy(name + PATH_MAX - 12, ".fxt");
	assert_int_equal(refuse(name, &said), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_other_lies_beside_it),
		cmocka_unit_test(test_no_name_is_a_default),
		cmocka_unit_test(test_other_names_are_refused),
		cmocka_unit_test(test_names_that_are_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
