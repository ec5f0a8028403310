// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stderr_capture.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/signals.h"

#define SURVIVED 7

static char path[] = "/tmp/test_stop.XXXXXX";

/* In a process of its own, that gets the signal; its status, and what it said. */
static int run(void (*work)(int signal), int number, struct stderr_capture *said)
{
	int status, fd = mkstemp(path);
	pid_t pid;

	assert_true(fd >= 0);
	close(fd);
	stderr_capture__begin(said);
	pid = fork();
	if (!pid) {
		/* nohup(1) has it ignored. */
		signal(number, SIG_DFL);
		work(number);
		_exit(SURVIVED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	stderr_capture__end(said);
	return status;
}

/* There is no such file any more, or there is: 0 or 1. Takes it away. */
static int take_file(void)
{
	int is_there = !unlink(path);

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	return is_there;
}

static void work(int signal)
{
	stop__begin("stopped\n");
	stop__set_partial(path);
	raise(signal);
}

static void test_ends_and_leaves_nothing_half_done(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct stderr_capture said;

	for (int i = 0; i < 3; i++) {
		int status = run(work, signals[i], &said);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i]);
		assert_string_equal(said.text, "stopped\n");
		assert_int_equal(take_file(), 0);
	}
}

static void work_on_a_directory(int signal)
{
	char file[sizeof(path) + 8];

	if (unlink(path) || mkdir(path, 0700))
		return;
	for (int i = 0; i < 500; i++) {
		snprintf(file, sizeof(file), "%s/%d", path, i);
		if (i % 100 ? fs__write(file, "", 0) : mkdir(file, 0700))
			return;
	}
	work(signal);
}

static void test_leaves_no_half_of_a_directory(void **state)
{
	struct stderr_capture said;

	assert_true(WIFSIGNALED(run(work_on_a_directory, SIGINT, &said)));
	assert_int_equal(access(path, F_OK), -1);
	take_file();
}

static void work_to_the_end(int signal)
{
	stop__begin("stopped\n");
	stop__set_partial(path);
	stop__set_partial(NULL);
	raise(signal);
}

static void test_a_whole_file_stays(void **state)
{
	struct stderr_capture said;

	assert_true(WIFSIGNALED(run(work_to_the_end, SIGINT, &said)));
	assert_int_equal(take_file(), 1);
}

static void work_quietly(int signal)
{
	log__set_level(LOG_QUIET);
	work(signal);
}

static void test_quiet(void **state)
{
	struct stderr_capture said;

	assert_true(WIFSIGNALED(run(work_quietly, SIGINT, &said)));
	assert_string_equal(said.text, "");
	assert_int_equal(take_file(), 0);
}

static void work_ignoring(int which)
{
	signal(which, SIG_IGN);
	work(which);
	stop__end();
	raise(which);
}

/* nohup(1) says so; and nobody has to read along. */
static void test_what_is_ignored(void **state)
{
	struct stderr_capture said;

	assert_int_equal(run(work_ignoring, SIGHUP, &said), SURVIVED << 8);
	assert_int_equal(take_file(), 1);
	assert_int_equal(run(work, SIGPIPE, &said), SURVIVED << 8);
	assert_int_equal(take_file(), 1);
}

static void work_after(int signal)
{
	stop__begin("stopped\n");
	stop__end();
	stop__end();
	raise(signal);
}

static void test_afterwards_it_is_as_before(void **state)
{
	static const int signals[] = {SIGINT, SIGPIPE};
	struct stderr_capture said;

	for (int i = 0; i < 2; i++) {
		int status = run(work_after, signals[i], &said);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i]);
		assert_string_equal(said.text, "");
		take_file();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends_and_leaves_nothing_half_done),
		cmocka_unit_test(test_leaves_no_half_of_a_directory),
		cmocka_unit_test(test_a_whole_file_stays),
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_what_is_ignored),
		cmocka_unit_test(test_afterwards_it_is_as_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
