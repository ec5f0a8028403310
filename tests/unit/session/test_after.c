// SPDX-License-Identifier: MIT
#include "keep/after.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "said.h"
#include "stderr_capture.h"

static int summarise_for_ever(const char *path, struct metrics_cause causes[])
{
	for (;;)
		pause();
	return 0;
}

static int summarise_nothing(const char *path, struct metrics_cause causes[])
{
	return 0;
}

/* What is said about one recording, which is processed until that is done or ended. */
static void process(const struct keep_options *options, const char *path, struct metrics *m,
		    struct stderr_capture *capture)
{
	struct after *after = malloc(sizeof(*after));

	assert_non_null(after);
	after__init(after, options);
	stderr_capture__begin(capture);
	after__add(after, path, m);
	while (after__current(after)) {
		usleep(1000);
		after__look(after, m);
	}
	stderr_capture__end(capture);
	free(after);
}

/* -on-capture is named only if it was given. */
static void test_says_what_took_too_long(void **state)
{
	struct keep_options options = {.summarise = summarise_for_ever,
				       .on_capture_timeout_ns = 20000000};
	struct stderr_capture capture;
	struct metrics m = {0};

	process(&options, "/", &m, &capture);
	said__expect(capture.text, "", TEXT_hook_too_slow, "/", "summary", "20.0 ms");
	assert_int_equal(m.on_capture[ON_CAPTURE_FAILED], 0);
	options.on_capture = "true";
	process(&options, "/", &m, &capture);
	said__expect(capture.text, "", TEXT_hook_too_slow, "/", "summary and -on-capture",
		     "20.0 ms");
	assert_int_equal(m.on_capture[ON_CAPTURE_FAILED], 1);
}

static void test_a_recording_that_is_gone_is_not_a_full_queue(void **state)
{
	struct keep_options options = {.summarise = summarise_nothing,
				       .on_capture_timeout_ns = 20000000};
	struct stderr_capture capture;
	struct metrics m = {0};

	process(&options, "/none.mtbpf", &m, &capture);
	said__expect(capture.text, "", TEXT_nothing_done_with, "/none.mtbpf", "summary",
		     strerror(ENOENT));
}

static void test_a_command_that_fails(void **state)
{
	struct keep_options options = {.on_capture = "false",
				       .on_capture_timeout_ns = 60000000000ull};
	struct stderr_capture capture;
	struct metrics m = {0};

	process(&options, "/", &m, &capture);
	said__expect(capture.text, "", TEXT_hook_exited, "false", "/", 1);
	assert_int_equal(m.on_capture[ON_CAPTURE_FAILED], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_says_what_took_too_long),
		cmocka_unit_test(test_a_recording_that_is_gone_is_not_a_full_queue),
		cmocka_unit_test(test_a_command_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
