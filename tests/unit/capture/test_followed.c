// SPDX-License-Identifier: MIT
/*
 * Which threads and processes get a ring, above all those that no record reports since they started
 * before the events of their parent were open. The rings are fakes; the threads are real.
 */
#include "capture/perf/followed.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "util/cleanup.h"

#define THREADS_MAX 64
#define ENDLESS	    1000

struct source {
	struct followed followed; /* first: a source begins with it */
	struct source_config config;
	size_t births; /* so many of the next openings of a ring each start a thread */
	pthread_t threads[THREADS_MAX];
	size_t n_threads;
	struct pid_set targets;
	bool is_full;
};

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int open_ring(struct source *s, struct followed_ring *ring, const struct event_place *place)
{
	ring->place = *place;
	ring->wakes = -1;
	ring->sideband.event = eventfd(0, EFD_CLOEXEC);
	if (s->births) {
		s->births--;
		assert_true(s->n_threads < THREADS_MAX);
		assert_int_equal(pthread_create(&s->threads[s->n_threads++], NULL, sleep_on, NULL),
				 0);
	}
	return 0;
}

static void close_ring(struct followed_ring *ring)
{
	close(ring->sideband.event);
}

static int enable_ring(struct source *s, struct followed_ring *ring, uint64_t *time_ns)
{
	(void)s;
	(void)ring;
	*time_ns = 1;
	return 0;
}

static bool fits(const struct source *s, size_t n)
{
	(void)n;
	return !s->is_full;
}

static const struct followed_ops ops = {.ring_size = sizeof(struct followed_ring),
					.open_ring = open_ring,
					.close_ring = close_ring,
					.enable_ring = enable_ring,
					.fits = fits};

static int add_targets(void *ctx, struct pid_set *pids)
{
	return pid_set__add_all(pids, &((struct source *)ctx)->targets);
}

static int set_up(void **state)
{
	struct source *s = calloc(1, sizeof(*s));

	if (!s)
		return -1;
	s->config = (struct source_config){
		.pid = getpid(), .children = true, .add_targets = add_targets, .targets_ctx = s};
	*state = s;
	return followed__open(&s->followed, &s->config, &ops);
}

static int tear_down(void **state)
{
	struct source *s = *state;

	for (size_t i = 0; i < s->n_threads; i++) {
		pthread_cancel(s->threads[i]);
		pthread_join(s->threads[i], NULL);
	}
	followed__close(&s->followed);
	pid_set__fini(&s->targets);
	free(s);
	return 0;
}

/* A child that sleeps until it is killed, or that has ended and was not waited for. */
static pid_t start_child(bool ends)
{
	pid_t parent = getpid(), pid = fork();
	siginfo_t info;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ends || getppid() != parent)
			_exit(0);
		sleep_on(NULL);
	}
	assert_true(pid > 0);
	if (ends)
		assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static size_t count_rings_without(const struct followed *f)
{
	_cleanup_free_ pid_t *tids = NULL;
	size_t n, without = 0;

	assert_int_equal(process__threads(getpid(), &tids, &n), 0);
	for (size_t i = 0; i < n; i++)
		without += !pid_set__has(&f->tids, tids[i]);
	return without;
}

static void test_threads_that_start_while_rings_are_opened(void **state)
{
	struct source *s = *state;

	/* Each is in none of the lists so far, and starts before the events of all are open. */
	s->births = 4;
	assert_int_equal(followed__add_threads(&s->followed), 0);
	assert_int_equal(followed__threads(&s->followed), 0);
	assert_int_equal(s->n_threads, 4);
	assert_int_equal(count_rings_without(&s->followed), 0);
	/* A sanitizer may have a thread of its own. */
	assert_true(s->followed.rings.n >= 5);
}

static void test_endless_births_do_not_hold_it(void **state)
{
	struct source *s = *state;
	size_t before;

	s->births = ENDLESS;
	assert_int_equal(followed__add_threads(&s->followed), 0);
	assert_int_equal(followed__threads(&s->followed), 0);
	before = s->n_threads;
	/* The next call goes on, although no record reports the thread that was left. */
	s->births = 0;
	assert_true(count_rings_without(&s->followed) > 0);
	assert_int_equal(followed__threads(&s->followed), 0);
	assert_int_equal(count_rings_without(&s->followed), 0);
	assert_int_equal(s->n_threads, before);
}

static void test_a_child_that_no_record_reports(void **state)
{
	struct source *s = *state;
	pid_t child = start_child(false);

	assert_int_equal(followed__add_threads(&s->followed), 0);
	assert_int_equal(pid_set__add(&s->targets, child), 0);
	assert_int_equal(followed__threads(&s->followed), 0);
	assert_true(followed__has_ring(&s->followed, child));
	assert_true(followed__knows(&s->followed, child));
	/* The next list is made only when a record reports something. */
	end_child(child);
}

static void test_a_zombie_is_not_followed(void **state)
{
	struct source *s = *state;
	pid_t child = start_child(true);

	assert_int_equal(followed__add_threads(&s->followed), 0);
	assert_int_equal(pid_set__add(&s->targets, child), 0);
	assert_int_equal(followed__threads(&s->followed), 0);
	assert_int_equal(s->followed.processes.n, 1);
	assert_false(pid_set__has(&s->followed.pids, child));
	end_child(child);
}

static void test_the_number_of_an_ended_child_is_forgotten(void **state)
{
	struct source *s = *state;
	pid_t child = start_child(false);
	const struct rec_thread reported = {.pid = child, .tid = child};

	end_child(child);
	assert_int_equal(followed__add_threads(&s->followed), 0);
	/* What the sideband does with the record of the fork. */
	assert_int_equal(pid_set__add(&s->followed.pids, child), 0);
	assert_int_equal(VEC_ADD(&s->followed.sideband.started, reported), 0);
	assert_int_equal(followed__threads(&s->followed), 0);
	assert_false(pid_set__has(&s->followed.pids, child));
}

static void test_a_child_without_room_is_watched_once(void **state)
{
	struct source *s = *state;
	pid_t child = start_child(false);

	assert_int_equal(followed__add_threads(&s->followed), 0);
	assert_int_equal(pid_set__add(&s->targets, child), 0);
	s->is_full = true;
	for (int i = 0; i < 3; i++) {
		s->followed.may_have_missed = true;
		assert_int_equal(followed__threads(&s->followed), 0);
	}
	assert_int_equal(s->followed.processes.n, 2);
	assert_false(followed__has_ring(&s->followed, child));
	end_child(child);
}

static void test_hits_without_a_ring_are_counted(void **state)
{
	struct source *s = *state;
	const struct mt_hit own = {.tgid = (uint32_t)getpid(), .tid = (uint32_t)gettid()},
			    foreign = {.tgid = 1, .tid = 1};
	struct recording rec;

	recording__init(&rec);
	assert_int_equal(followed__add_threads(&s->followed), 0);
	assert_int_equal(VEC_ADD(&rec.hits, foreign), 0);
	assert_int_equal(VEC_ADD(&rec.hits, own), 0);
	assert_int_equal(VEC_ADD(&rec.hits, foreign), 0);
	/* Hit 0 is one of an earlier snapshot. */
	s->config.first_hit = 1;
	assert_int_equal(followed__finish_read(&s->followed, 0, 1, false, &rec), 0);
	assert_int_equal(rec.drops[DROP_HITS], 1);
	recording__fini(&rec);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_threads_that_start_while_rings_are_opened),
		TEST(test_endless_births_do_not_hold_it),
		TEST(test_a_child_that_no_record_reports),
		TEST(test_a_zombie_is_not_followed),
		TEST(test_the_number_of_an_ended_child_is_forgotten),
		TEST(test_a_child_without_room_is_watched_once),
		TEST(test_hits_without_a_ring_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
