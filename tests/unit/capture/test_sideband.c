// SPDX-License-Identifier: MIT
/* What perf's records of threads that begin and end are taken for, out of a ring that is made here.
 */
#include "capture/perf/sideband.h"

#include <setjmp.h>
#include <stdarg.h>
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

static void put(struct fixture *f, uint32_t type, uint32_t pid, uint32_t tid)
{
	const struct task task = {
		.header = {.type = type, .size = sizeof(task)},
		.pid = pid,
		.ppid = PID,
		.tid = tid,
		.ptid = PID,
		.time_ns = TIME_NS,
		.id = {.pid = pid, .tid = tid, .time_ns = TIME_NS},
	};

	memcpy(f->data + f->page.data_head, &task, sizeof(task));
	f->page.data_head += sizeof(task);
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
	assert_int_equal(f->sideband.ended.v[0], THREAD);
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
	assert_int_equal(f->sideband.ended.v[0], THREAD);
}

/* Its rings are the CPUs': none of them ends. */
static void test_of_a_cgroup_nothing_ends(void **state)
{
	struct fixture *f = *state;

	f->sideband.pids = NULL;
	put(f, PERF_RECORD_EXIT, PID, THREAD);
	assert_int_equal(f->sideband.ended.n, 0);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
