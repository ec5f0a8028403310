// SPDX-License-Identifier: MIT
/* Clocks run on the CPUs that the target may use, and follow it when these change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/sample/sample_source.h"
#include "trigger/recorder.h"
#include "util/clock.h"

#define LOG_SIZE (64u << 10)

static void move_to(pid_t pid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(pid, sizeof(one), &one), 0);
}

static pid_t start_target(int cpu)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile uint64_t x = 0;; x++)
			;
	}
	assert_true(pid > 0);
	move_to(pid, cpu);
	return pid;
}

/* Nanoseconds that its clock has run on that CPU; 0: it has none there. */
static uint64_t clock_ns(const struct source *s, int cpu)
{
	for (size_t i = 0; i < s->rings.n; i++) {
		uint64_t ns = 0;

		if (s->rings.v[i].place.cpu == cpu &&
		    read(s->rings.v[i].events[SAMPLE_EVENT_CLOCK], &ns, sizeof(ns)) == sizeof(ns))
			return ns;
	}
	return 0;
}

/* The source looks once a second. */
static void look(struct source *s)
{
	uint64_t until = clock__now_ns() + 1100000000;

	do {
		usleep(50000);
		assert_int_equal(source_sample.state(s), SOURCE_RUNNING);
	} while (clock__now_ns() < until);
}

static bool ticks_on(const struct source *s, int cpu)
{
	uint64_t before = clock_ns(s, cpu);

	usleep(20000);
	return clock_ns(s, cpu) > before;
}

static void test_clocks_follow_the_affinity(void **state)
{
	pid_t pid;
	struct recorder *recorder;
	struct source *source;

	if (geteuid() || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	pid = start_target(0);
	recorder = recorder__new(&(struct recorder_config){.tgid = pid, .log_size = LOG_SIZE});
	assert_non_null(recorder);
	recorder__begin(recorder);
	source = source_sample.open(&(struct source_config){.pid = pid,
							    .snapshot_size = 256 << 10,
							    .max_memory = 64 << 20,
							    .sample_rate = 100,
							    .sample_gate = recorder__gate(recorder),
							    .sample_by_cpu = true,
							    .sample_log = LOG_SIZE,
							    .is_silent = true,
							    .freeze_fd = -1});
	assert_non_null(source);
	assert_int_equal(source_sample.start(source), 0);
	assert_true(ticks_on(source, 0));
	assert_int_equal(source->rings.n, 1);

	move_to(pid, 1);
	look(source);
	assert_true(ticks_on(source, 1));
	assert_false(ticks_on(source, 0));

	move_to(pid, 0);
	look(source);
	assert_true(ticks_on(source, 0));
	assert_false(ticks_on(source, 1));

	source_sample.close(source);
	recorder__free(recorder);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clocks_follow_the_affinity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
