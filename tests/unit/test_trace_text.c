// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "trace/text.h"

#define BASE 1000

static const struct function function = {.name = "two\nlines"};

static struct call calls[] = {
	{.start_ns = 1000, .end_ns = 1100, .depth = 0, .function = &function},
	{.start_ns = 999, .end_ns = 1020, .depth = 1, .function = &function},
	{.start_ns = 1010, .end_ns = 1020, .depth = 511, .kind = CALL_UNTRACED},
	{.start_ns = 1010, .end_ns = 1020, .depth = 512, .kind = CALL_UNTRACED},
	{.start_ns = 1030, .end_ns = 1040, .depth = 1, .kind = CALL_SYSCALL},
};

static const struct call_tree tree = {.pid = 42, .tid = 43, .calls = {.v = calls, .n = 5}};

static void test_lines(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(trace_text__tree(out, &tree, BASE), 0);
	fclose(out);
	assert_string_equal(text, "43 0 0 100 two?lines\n"
				  "43 1 0 20 two?lines\n"
				  "43 511 10 20 [untraced]\n"
				  "43 1 30 40 [syscall]\n");
	free(text);
}

static void test_error(void **state)
{
	FILE *out = fopen("/dev/full", "w");

	setvbuf(out, NULL, _IONBF, 0);
	assert_int_equal(trace_text__tree(out, &tree, BASE), -ENOSPC);
	fclose(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
