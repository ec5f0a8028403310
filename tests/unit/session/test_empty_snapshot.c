// SPDX-License-Identifier: MIT
#include "session/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <errno.h>

#include "stderr_capture.h"

/* Nobody has it: pids end at 2^22. */
#define PID 5000000

static const struct recording short_one = {.sample_period_ns = 1000000, .sampled_ns = 3210000};
static const struct recording long_one = {.sample_period_ns = 1000000, .sampled_ns = 2000000000};
static const struct recording of_pt = {0};

static void expect(const struct recording *rec, pid_t pid, const char *text)
{
	char got[EMPTY_SNAPSHOT_TEXT_SIZE];

	assert_string_equal(empty_snapshot__format(got, rec, pid), text);
}

/* Of samples it is not said that nothing ran: that is not known. */
static void test_text(void **state)
{
	expect(&of_pt, PID, "nothing was recorded: process 5000000 ran no instruction");
	expect(&of_pt, 0, "nothing was recorded: none of the processes ran an instruction");
	expect(&short_one, PID,
	       "nothing was recorded: no stack of process 5000000 was taken in 3.21 ms of "
	       "sampling");
	expect(&long_one, 0,
	       "nothing was recorded: no stack of any of the processes was taken in 2.00 s of "
	       "sampling");
}

static void expect_hint(const struct recording *rec, const char *hint)
{
	struct stderr_capture said;
	int err;

	stderr_capture__begin(&said);
	err = empty_snapshot__refuse(rec, PID);
	assert_non_null(strstr(stderr_capture__end(&said), hint));
	assert_int_equal(err, -ENOMSG);
}

static void test_hint(void **state)
{
	expect_hint(&short_one, "stacks are taken after each 1.00 ms of running time");
	expect_hint(&long_one, "the target may have been asleep");
	expect_hint(&of_pt, "the target may have been asleep");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
