// SPDX-License-Identifier: MIT
/* selftest's check "target afterwards": what is wrong with the programs' process is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "mtbpf.h"
#include "selftest/trial.h"

static struct trial trial;

/* A child that ends an iteration each millisecond. It writes an int3 into its probed function. */
static void start(bool is_probed)
{
	trial.child = fork();
	if (trial.child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (is_probed) {
		uint8_t *code = (uint8_t *)(uintptr_t)mtbpf_hit;
		uint8_t *page = code - (uintptr_t)code % 4096;

		if (mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
			_exit(1);
		*code = 0xcc;
	}
	for (;;) {
		trial.log->n_iterations++;
		usleep(1000);
	}
}

static int set_up(void **state)
{
	trial.log = mmap(NULL, sizeof(*trial.log), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return trial.log == MAP_FAILED;
}

static int tear_down(void **state)
{
	kill(trial.child, SIGKILL);
	waitpid(trial.child, NULL, __WALL);
	return munmap(trial.log, sizeof(*trial.log));
}

static void test_unharmed(void **state)
{
	start(false);
	/* As a recording leaves it. */
	kill(trial.child, SIGSTOP);
	assert_null(trial__find_harm(&trial));
}

/* Lets all signals through. */
static _Noreturn void trace(pid_t pid, int told)
{
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) || write(told, "", 1) != 1)
		_exit(1);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, pid, NULL, status >> 16 ? 0 : WSTOPSIG(status));
	_exit(0);
}

static void test_still_traced(void **state)
{
	int ends[2];
	char byte;
	pid_t tracer;

	start(false);
	assert_int_equal(pipe(ends), 0);
	tracer = fork();
	if (!tracer)
		trace(trial.child, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_string_equal(trial__find_harm(&trial), "the target is stopped, or still traced");
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	close(ends[0]);
}

static void test_probe(void **state)
{
	start(true);
	assert_string_equal(trial__find_harm(&trial), "a probe is left in the target");
}

static void test_ended(void **state)
{
	start(false);
	kill(trial.child, SIGKILL);
	assert_string_equal(trial__find_harm(&trial), "the target does not run on");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_unharmed),
		TEST(test_still_traced),
		TEST(test_probe),
		TEST(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
