// SPDX-License-Identifier: MIT
/* What perf's records of threads that begin and end are taken for, out of a ring that is made here.
 */
#include "capture/perf/sideband.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PID	4000
#define CHILD	4001
#define THREAD	4002
#define RING	4096
#define TIME_NS 5000

/* PERF_RECORD_FORK and PERF_RECORD_EXIT, with their sample_id (enum perf_event_type). */
struct task {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
	struct {
		uint32_t pid, tid;
		uint64_t time_ns, cpu, identifier;
	} id;
};

struct fixture {
	struct recording rec;
	struct pid_set pids;
	struct sideband sideband;
	struct perf_event_mmap_page page;
	uint8_t data[RING];
	struct perf_ring ring;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	recording__init(&f->rec);
	f->ring = (struct perf_ring){.page = &f->page, .data = f->data, .data_size = RING};
	f->sideband.rec = &f->rec;
	f->sideband.pids = &f->pids;
	*state = f;
	return pid_set__add(&f->pids, PID);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	sideband__fini(&f->sideband);
	pid_set__fini(&f->pids);
	recording__fini(&f->rec);
	free(f);
	return 0;
}

static void put_at(struct perf_ring *ring, uint32_t type, uint32_t pid, uint32_t tid, uint32_t ppid,
		   uint64_t time_ns)
{
	const struct task task = {
		.header = {.type = type, .size = sizeof(task)},
		.pid = pid,
		.ppid = ppid,
		.tid = tid,
		.ptid = ppid,
		.time_ns = time_ns,
		.id = {.pid = pid, .tid = tid, .time_ns = time_ns},
	};

	memcpy(ring->data + ring->page->data_head, &task, sizeof(task));
	ring->page->data_head += sizeof(task);
}

static void put(struct fixture *f, uint32_t type, uint32_t pid, uint32_t tid)
{
	put_at(&f->ring, type, pid, tid, PID, TIME_NS);
	assert_int_equal(sideband__drain(&f->sideband, &f->ring), 0);
	assert_int_equal(f->page.data_tail, f->page.data_head);
}

static void test_threads_begin_and_end(void **state)
{
	struct fixture *f = *state;

	put(f, PERF_RECORD_FORK, PID, THREAD);
	assert_int_equal(f->sideband.started.n, 1);
	assert_int_equal(f->sideband.started.v[0].tid, THREAD);
	put(f, PERF_RECORD_EXIT, PID, THREAD);
	assert_int_equal(f->sideband.ended.n, 1);
	assert_int_equal(f->sideband.ended.v[0].tid, THREAD);
}

static void test_a_child_is_ours_where_it_is_wanted(void **state)
{
	struct fixture *f = *state;

	put(f, PERF_RECORD_FORK, CHILD, CHILD);
	assert_int_equal(f->sideband.started.n, 0);
	f->sideband.children = true;
	put(f, PERF_RECORD_FORK, CHILD, CHILD);
	assert_int_equal(f->sideband.started.n, 1);
	assert_int_equal(f->sideband.started.v[0].pid, CHILD);
}

/* Otherwise its ring would stay for ever: see followed__is_alive(). */
static void test_a_thread_ends_whose_process_is_known_to_have_gone(void **state)
{
	struct fixture *f = *state;

	pid_set__remove(&f->pids, PID);
	put(f, PERF_RECORD_EXIT, PID, THREAD);
	assert_int_equal(f->sideband.ended.n, 1);
	assert_int_equal(f->sideband.ended.v[0].tid, THREAD);
}

/* Its rings are the CPUs': none of them ends. */
static void test_of_a_cgroup_nothing_ends(void **state)
{
	struct fixture *f = *state;

	f->sideband.pids = NULL;
	put(f, PERF_RECORD_EXIT, PID, THREAD);
	assert_int_equal(f->sideband.ended.n, 0);
}

/* A child that is forked on one CPU maps its files on another, whose ring is read first. */
static void test_rings_of_cpus_are_read_in_the_order_of_time(void **state)
{
	struct fixture *f = *state;
	struct perf_event_mmap_page page = {0};
	uint8_t data[RING] = {0};
	struct perf_ring other = {.page = &page, .data = data, .data_size = RING};

	f->sideband.children = f->sideband.of_cpus = true;
	put_at(&other, PERF_RECORD_FORK, CHILD + 1, CHILD + 1, CHILD, TIME_NS + 2);
	put_at(&f->ring, PERF_RECORD_FORK, CHILD, CHILD, PID, TIME_NS + 1);
	assert_int_equal(sideband__collect(&f->sideband, &other), 0);
	assert_int_equal(sideband__collect(&f->sideband, &f->ring), 0);
	assert_int_equal(sideband__settle(&f->sideband, true), 0);
	assert_int_equal(f->sideband.started.n, 2);
	assert_int_equal(f->sideband.started.v[0].pid, CHILD);
	assert_int_equal(f->sideband.started.v[1].pid, CHILD + 1);
}

/* What is younger than the look at the first ring waits: another may have something older. */
static void test_what_is_too_young_waits(void **state)
{
	struct fixture *f = *state;

	f->sideband.children = f->sideband.of_cpus = true;
	put_at(&f->ring, PERF_RECORD_FORK, CHILD, CHILD, PID, UINT64_MAX - 1);
	assert_int_equal(sideband__collect(&f->sideband, &f->ring), 0);
	assert_int_equal(sideband__settle(&f->sideband, false), 0);
	assert_int_equal(f->sideband.started.n, 0);
	assert_int_equal(sideband__settle(&f->sideband, true), 0);
	assert_int_equal(f->sideband.started.n, 1);
}

static bool holds_none(const struct source *source, pid_t pid)
{
	return false;
}

static bool holds_all(const struct source *source, pid_t pid)
{
	return true;
}

static size_t churn(struct fixture *f, bool (*holds)(const struct source *, pid_t), pid_t n)
{
	/* Above what the kernel gives: none of them is there. */
	const pid_t first = 1 << 23;

	f->sideband.children = true;
	for (pid_t pid = first; pid < first + n; pid++) {
		char path[] = "/bin/true";
		struct rec_map map = {
			.time_ns = TIME_NS, .pid = pid, .tid = pid, .len = 4096, .path = path};

		put(f, PERF_RECORD_FORK, (uint32_t)pid, (uint32_t)pid);
		assert_int_equal(recording__add_map(&f->rec, &map), 0);
		put(f, PERF_RECORD_EXIT, (uint32_t)pid, (uint32_t)pid);
		assert_int_equal(sideband__tidy(&f->sideband, holds, NULL), 0);
		f->page.data_head = f->page.data_tail = 0;
	}
	return f->rec.maps.n;
}

static void test_what_has_gone_is_forgotten(void **state)
{
	struct fixture *f = *state;

	assert_true(churn(f, holds_none, 3 * SIDEBAND_GONE_MAX) <= 2 * SIDEBAND_GONE_MAX);
	assert_true(f->rec.threads.n <= 2 * SIDEBAND_GONE_MAX);
	/* The latest are not. */
	assert_true(f->rec.maps.n >= SIDEBAND_GONE_MAX);
}

static void test_what_a_ring_holds_is_not_forgotten(void **state)
{
	assert_int_equal(churn(*state, holds_all, 2 * SIDEBAND_GONE_MAX + 10),
			 2 * SIDEBAND_GONE_MAX + 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_threads_begin_and_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_child_is_ours_where_it_is_wanted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_thread_ends_whose_process_is_known_to_have_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_of_a_cgroup_nothing_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rings_of_cpus_are_read_in_the_order_of_time,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_too_young_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_has_gone_is_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_a_ring_holds_is_not_forgotten, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
