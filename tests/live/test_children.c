// SPDX-License-Identifier: MIT
/*
 * What the target forks gets a ring per thread, also what is forked by a child whose events are not
 * open yet, or before the target's own are: no record of perf reports those.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/sample/sample_source.h"
#include "trigger/trigger.h"

#define DEPTH	6
#define STAY	(DEPTH / 2)
#define LIMIT_S 120

struct fixture {
	pid_t root;
	int order, pids; /* a byte makes the root fork; each process that stays writes its pid */
	pid_t stay[STAY];
	struct trigger *trigger;
	struct source *source;
};

/* Every other process ends at once, so that its child's parent is another one then. */
static void fork_on(int depth, int pids)
{
	pid_t own;

	alarm(LIMIT_S);
	/* A child forgets its parent's alarm. */
	while (depth && !fork()) {
		depth--;
		alarm(LIMIT_S);
	}
	if (depth % 2)
		_exit(0);
	own = getpid();
	if (depth < DEPTH && write(pids, &own, sizeof(own)) != sizeof(own))
		_exit(1);
	for (;;)
		pause();
}

static void run_root(int order, int pids)
{
	char byte;

	setpgid(0, 0);
	alarm(LIMIT_S);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(pids, "r", 1) == 1 && read(order, &byte, 1) == 1)
		fork_on(DEPTH, pids);
	_exit(1);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int order[2], pids[2];
	char ready;

	if (!f || pipe(order) || pipe(pids))
		return -1;
	f->root = fork();
	if (!f->root)
		run_root(order[0], pids[1]);
	close(order[0]);
	close(pids[1]);
	f->order = order[1];
	f->pids = pids[0];
	*state = f;
	return f->root > 0 && read(f->pids, &ready, 1) == 1 ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->source)
		source_sample.close(f->source);
	trigger__free(f->trigger);
	kill(-f->root, SIGKILL);
	waitpid(f->root, NULL, 0);
	close(f->order);
	close(f->pids);
	free(f);
	return 0;
}

static int add_pid(void *ctx, pid_t pid)
{
	return pid_set__add(ctx, pid);
}

static int add_targets(void *ctx, struct pid_set *pids)
{
	return trigger__each_target(ctx, add_pid, pids);
}

static void begin_to_follow(struct fixture *f)
{
	if (geteuid())
		skip();
	f->trigger = trigger__new(&(struct trigger_config){
		.tgids = &f->root, .n_tgids = 1, .with_children = true, .count_only = true});
	assert_non_null(f->trigger);
}

static void begin_to_record(struct fixture *f)
{
	f->source = source_sample.open(&(struct source_config){.pid = f->root,
							       .children = true,
							       .add_targets = add_targets,
							       .targets_ctx = f->trigger,
							       .snapshot_size = 64 << 10,
							       .max_memory = 256 << 20,
							       .sample_rate = 100,
							       .sample_gate = -1,
							       .is_silent = true,
							       .freeze_fd = -1});
	assert_non_null(f->source);
	assert_int_equal(source_sample.start(f->source), 0);
}

/* All are there before the source looks again: it learns of the first one at most. */
static void make_it_fork(struct fixture *f)
{
	assert_int_equal(write(f->order, "f", 1), 1);
	for (int i = 0; i < STAY; i++)
		assert_int_equal(read(f->pids, &f->stay[i], sizeof(pid_t)), sizeof(pid_t));
}

static size_t count_rings(const struct fixture *f)
{
	size_t n = 0;

	for (int i = 0; i < STAY; i++)
		n += followed__has_ring(&f->source->followed, f->stay[i]);
	return n;
}

/* A record is handled when the next one of another ring could not be older. */
static void look(struct fixture *f)
{
	struct pollfd poll_fd = {.fd = source_sample.fd(f->source), .events = POLLIN};

	for (int i = 0; i < 50 && count_rings(f) < STAY; i++) {
		poll(&poll_fd, 1, 100);
		assert_int_equal(source_sample.state(f->source), SOURCE_RUNNING);
	}
}

static void test_a_child_forks_before_its_events_are_open(void **state)
{
	struct fixture *f = *state;

	begin_to_follow(f);
	begin_to_record(f);
	make_it_fork(f);
	look(f);
	assert_int_equal(count_rings(f), STAY);
}

static void test_forks_before_any_event_is_open(void **state)
{
	struct fixture *f = *state;

	begin_to_follow(f);
	make_it_fork(f);
	begin_to_record(f);
	look(f);
	assert_int_equal(count_rings(f), STAY);
	for (int i = 0; i < STAY; i++)
		assert_true(followed__knows(&f->source->followed, f->stay[i]));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_a_child_forks_before_its_events_are_open),
		TEST(test_forks_before_any_event_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
