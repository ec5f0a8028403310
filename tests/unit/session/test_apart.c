// SPDX-License-Identifier: MIT
/* Work in a process of its own: its answer, its end, its rights, and the signals that are for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apart.h"
#include "said.h"
#include "stderr_capture.h"
#include "util/signals.h"
#include "util/log.h"

struct context {
	int result;
	pid_t maker;
};

static int answer(void *context)
{
	const struct context *c = (const struct context *)context;

	return getpid() == c->maker || !prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) ? -EPROTO
									       : c->result;
}

static int say(void *context)
{
	log__error("it is so");
	return -ENOSPC;
}

static int crash(void *context)
{
	return raise(SIGKILL);
}

static int leave(void *context)
{
	_exit(3);
}

/* Tells its maker to end, who is to hand that on. */
static int wait_for_an_end(void *context)
{
	interrupts__release();
	kill(getppid(), SIGTERM);
	for (;;)
		pause();
	return 0;
}

static void test_it_answers_without_rights(void **state)
{
	struct context context = {.maker = getpid()};
	int before = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);

	for (context.result = -3; context.result < 3; context.result++)
		assert_int_equal(apart__run(answer, &context, "work", "try again"), context.result);
	assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), before);
}

static void test_what_it_said_is_not_said_again(void **state)
{
	struct stderr_capture said;

	assert_false(log__has_error());
	stderr_capture__begin(&said);
	assert_int_equal(apart__run(say, NULL, "work", "try again"), -ENOSPC);
	stderr_capture__end(&said);
	assert_string_equal(said.text, "mtbpf: it is so\n");
	assert_true(log__has_error());
}

static void test_a_crash_is_told(void **state)
{
	struct stderr_capture said;

	stderr_capture__begin(&said);
	assert_int_equal(apart__run(crash, NULL, "work", "try again"), -EIO);
	stderr_capture__end(&said);
	ASSERT_COMPLAINT(said.text);
	ASSERT_ERROR(said.text, TEXT_ended_by_signal, "work", "Killed");
}

static void test_an_end_without_an_answer_is_told(void **state)
{
	struct stderr_capture said;

	stderr_capture__begin(&said);
	assert_int_equal(apart__run(leave, NULL, "work", "try again"), -EIO);
	stderr_capture__end(&said);
	ASSERT_COMPLAINT(said.text);
	ASSERT_ERROR(said.text, TEXT_ended_early, "work", 3);
}

static void test_no_descriptors_left(void **state)
{
	struct rlimit before, none;
	struct stderr_capture said;
	int err;

	stderr_capture__begin(&said);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	err = apart__run(leave, NULL, "work", "try again");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	stderr_capture__end(&said);
	assert_int_equal(err, -EMFILE);
	ASSERT_ERROR(said.text, TEXT_cannot_start_process, "work", strerror(EMFILE));
	ASSERT_HINT(said.text, "try again");
}

/* By the same signal: a shell that waits is to know. */
static void test_what_is_told_to_end_ends_both(void **state)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		interrupts__hold();
		_exit(apart__run(wait_for_an_end, NULL, "work", "try again") != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_answers_without_rights),
		cmocka_unit_test(test_what_it_said_is_not_said_again),
		cmocka_unit_test(test_a_crash_is_told),
		cmocka_unit_test(test_an_end_without_an_answer_is_told),
		cmocka_unit_test(test_no_descriptors_left),
		cmocka_unit_test(test_what_is_told_to_end_ends_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
