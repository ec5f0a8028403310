// SPDX-License-Identifier: MIT
#include "target/unwind/ocaml_handlers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "said.h"
#include "stderr_capture.h"
#include "util/fs.h"

/* What reading that text says; the traps, which are to be freed. */
static int read_text(const char *text, struct ocaml_traps *traps, struct stderr_capture *said)
{
	char path[] = "/tmp/mtbpf-test-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(fs__write_fd(fd, text, strlen(text)), 0);
	close(fd);
	*traps = (struct ocaml_traps){0};
	stderr_capture__begin(said);
	err = ocaml_traps__read(traps, path);
	stderr_capture__end(said);
	unlink(path);
	return err;
}

static void test_a_line_an_address(void **state)
{
	struct stderr_capture said;
	struct ocaml_traps traps;

	assert_int_equal(
		read_text("0x55d0c81e2f40\n# a comment\n\n  7f00 # and another\r\nFFffFFffFFffFFff",
			  &traps, &said),
		0);
	assert_string_equal(said.text, "");
	assert_int_equal(traps.ips.n, 3);
	assert_true(ocaml_traps__has(&traps, 0x55d0c81e2f40));
	assert_true(ocaml_traps__has(&traps, 0x7f00));
	assert_true(ocaml_traps__has(&traps, UINT64_MAX));
	assert_false(ocaml_traps__has(&traps, 0x7f01));
	assert_false(ocaml_traps__has(&traps, 0));
	ocaml_traps__fini(&traps);
	assert_false(ocaml_traps__has(&traps, 0x7f00));
}

static void test_a_line_that_is_none(void **state)
{
	static const char *const lines[] = {
		"12 34", "+12", "0x", "camlFoo__bar", "1 0000000000000000", "10000000000000000",
		"0x12g"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct stderr_capture said;
		struct ocaml_traps traps;
		char text[64], shown[64];

		snprintf(text, sizeof(text), "12\n\n%s\n34", lines[i]);
		snprintf(shown, sizeof(shown), ":3: '%s' is not an address\nhint: ", lines[i]);
		assert_int_equal(read_text(text, &traps, &said), -EINVAL);
		assert_non_null(strstr(said.text, shown));
		ocaml_traps__fini(&traps);
	}
}

static void test_no_file(void **state)
{
	struct stderr_capture said;
	struct ocaml_traps traps = {0};

	stderr_capture__begin(&said);
	assert_int_equal(ocaml_traps__read(&traps, "/nowhere/traps"), -ENOENT);
	stderr_capture__end(&said);
	ASSERT_ERROR(said.text, TEXT_cannot_read, "/nowhere/traps", strerror(ENOENT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line_an_address),
		cmocka_unit_test(test_a_line_that_is_none),
		cmocka_unit_test(test_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
