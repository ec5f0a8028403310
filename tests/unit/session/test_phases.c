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
#include "view/phases.h"

static void assert_next(const char *program, const char *file, const char *expected)
{
	char *old = program_invocation_name;
	struct stderr_capture said;

	program_invocation_name = (char *)program;
	stderr_capture__begin(&said);
	next_step__say("view", file);
	assert_string_equal(stderr_capture__end(&said), expected);
	program_invocation_name = old;
}

static void test_next_step_as_a_shell_takes_it(void **state)
{
	unsetenv("SUDO_UID");
	assert_next("mtbpf", "/tmp/slow-2.fxt.gz", "next: mtbpf view /tmp/slow-2.fxt.gz\n");
	assert_next("build/mtbpf", "a b.fxt", "next: build/mtbpf view 'a b.fxt'\n");
	assert_next("/my tools/mtbpf", "it's.fxt", "next: '/my tools/mtbpf' view 'it'\\''s.fxt'\n");
	assert_next("mtbpf", "$(x);~*.fxt", "next: mtbpf view '$(x);~*.fxt'\n");
}

static void test_root_by_sudo_stays_root(void **state)
{
	if (geteuid())
		skip();
	setenv("SUDO_UID", "1000", 1);
	assert_next("mtbpf", "x.fxt", "next: sudo mtbpf view x.fxt\n");
	unsetenv("SUDO_UID");
}

static void assert_stopped(const char *recording, const char *output, const char *expected)
{
	char *text = stopped__format(recording, output);

	assert_string_equal(text, expected);
	free(text);
}

static void test_what_is_left_behind_ctrl_c(void **state)
{
	char *old = program_invocation_name;

	program_invocation_name = (char *)"mtbpf";
	unsetenv("SUDO_UID");
	assert_stopped("a b.mtbpf", "x.fxt",
		       "stopped: x.fxt is not written; the recording is whole\n"
		       "next: mtbpf decode 'a b.mtbpf' -o x.fxt\n");
	assert_stopped(NULL, "x.fxt", "stopped: x.fxt is not written\n");
	assert_stopped("a\x1b[m.mtbpf", "x\n.fxt",
		       "stopped: x?.fxt is not written; the recording is whole\n"
		       "next: mtbpf decode 'a?[m.mtbpf' -o 'x?.fxt'\n");
	program_invocation_name = old;
}

static void test_phases(void **state)
{
	struct phases phases = {.n = 2, .v = {{"capturing", 12300000000}, {"decoding", 512000000}}};
	struct stderr_capture said;

	stderr_capture__begin(&said);
	phases__say(&phases);
	assert_string_equal(stderr_capture__end(&said),
			    "took 12.8 s: capturing 12.3 s, decoding 512 ms\n");
	phases__begin(&phases);
	for (int i = 0; i < PHASES_MAX + 1; i++)
		phases__end(&phases, "again");
	assert_int_equal(phases.n, PHASES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next_step_as_a_shell_takes_it),
		cmocka_unit_test(test_root_by_sudo_stays_root),
		cmocka_unit_test(test_what_is_left_behind_ctrl_c),
		cmocka_unit_test(test_phases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
