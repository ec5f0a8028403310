// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stderr_capture.h"
#include "trace/text.h"
#include "util/fs.h"

#define BASE	  1000
#define KERNEL_IP 0xffffffff81000000

static const struct function function = {.name = "two\nlines"};

static const struct function kernel_function = {.name = "do_syscall_64", .module = "[kernel]"};
static const struct function module_function = {.name = "f [ext4]", .module = "ext4"};

static const struct function inlined = {.name = "helper", .kind = FUNCTION_INLINED};

static struct call calls[] = {
	{.start_ns = 1000, .end_ns = 1100, .depth = 0, .function = &function},
	{.start_ns = 999, .end_ns = 1020, .depth = 1, .function = &function},
	{.start_ns = 1010, .end_ns = 1020, .depth = 511, .kind = CALL_UNTRACED},
	{.start_ns = 1010, .end_ns = 1020, .depth = 512, .kind = CALL_UNTRACED},
	{.start_ns = 1030, .end_ns = 1040, .depth = 1, .kind = CALL_SYSCALL},
	{.start_ns = 1050,
	 .end_ns = 1060,
	 .depth = 1,
	 .kind = CALL_KERNEL,
	 .entry_ip = KERNEL_IP,
	 .function = &kernel_function},
	{.start_ns = 1050,
	 .end_ns = 1055,
	 .depth = 2,
	 .entry_ip = KERNEL_IP,
	 .function = &module_function},
	{.start_ns = 1070, .end_ns = 1080, .depth = 1, .kind = CALL_INLINED, .function = &inlined},
};

static const struct call_tree tree = {.pid = 42, .tid = 43, .calls = {.v = calls, .n = 8}};

static const char lines[] = "43 0 0 100 two?lines\n"
			    "43 1 0 20 two?lines\n"
			    "43 511 10 20 [untraced]\n"
			    "43 1 30 40 [syscall]\n"
			    "43 1 50 60 do_syscall_64 [kernel]\n"
			    "43 2 50 55 f [ext4]\n"
			    "43 1 70 80 helper [inlined]\n";

static void test_lines(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(trace_text__tree(out, &tree, BASE), 0);
	fclose(out);
	assert_string_equal(text, lines);
	free(text);
}

static void test_a_file(void **state)
{
	const struct call_tree trees[] = {tree, tree};
	char path[] = "/tmp/test_trace_text.XXXXXX", *text, *expected;
	uint64_t bytes;
	size_t len;
	int fd = mkstemp(path);

	close(fd);
	unlink(path);
	assert_int_equal(trace_text__write(path, trace_text__tree, trees, 2, BASE, &bytes), 0);
	assert_int_equal(fs__read(path, &text, &len), 0);
	assert_int_equal(len, bytes);
	assert_true(asprintf(&expected, "%s%s", lines, lines) > 0);
	assert_string_equal(text, expected);
	free(expected);
	free(text);
	unlink(path);
}

/* What could not be written is said once, and no part of a file is left. */
static void test_a_file_that_cannot_be(void **state)
{
	struct stderr_capture said;
	uint64_t bytes;
	int err;

	stderr_capture__begin(&said);
	err = trace_text__write("/tmp/test_trace_text.none/x.txt", trace_text__tree, &tree, 1, BASE,
				&bytes);
	stderr_capture__end(&said);
	assert_int_equal(err, -ENOENT);
	assert_non_null(strstr(said.text, "hint: "));
}

static void test_a_coroutine(void **state)
{
	const struct call_tree other = {
		.pid = 42, .tid = 43, .coroutine = 2, .calls = {.v = &calls[4], .n = 1}};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(trace_text__tree(out, &other, BASE), 0);
	fclose(out);
	assert_string_equal(text, "43.2 1 30 40 [syscall]\n");
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
		cmocka_unit_test(test_a_file),
		cmocka_unit_test(test_a_file_that_cannot_be),
		cmocka_unit_test(test_a_coroutine),
		cmocka_unit_test(test_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
