// SPDX-License-Identifier: MIT
/* Who ran on a CPU, from the kernel's records: what is known, what is not, what is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "capture/perf/sideband.h"

enum { RING = 4096 };

struct fixture {
	struct switch_log log;
	char text[512];
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->log.ring_size = RING;
	f->log.start_ns = 100;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	switch_log__fini(&f->log);
	free(f);
	return 0;
}

/* What the recording gets: "TIME/CPU:TID" each. */
static const char *text_of(struct fixture *f)
{
	struct recording rec;
	size_t n = 0;

	recording__init(&rec);
	assert_int_equal(switch_log__add_to(&f->log, &rec), 0);
	f->text[0] = '\0';
	for (size_t i = 0; i < rec.switches.n; i++) {
		const struct rec_switch *sw = &rec.switches.v[i];

		assert_int_equal(sw->pid, sw->tid ? sw->tid / 10 * 10 : 0);
		n += (size_t)snprintf(f->text + n, sizeof(f->text) - n, "%s%llu/%d:%d",
				      i ? " " : "", (unsigned long long)sw->time_ns, sw->cpu,
				      sw->tid);
	}
	recording__fini(&rec);
	return f->text;
}

static void note(struct fixture *f, enum switch_event event, int cpu, uint64_t time_ns, pid_t pid,
		 pid_t tid)
{
	const struct rec_switch sw = {.time_ns = time_ns, .cpu = cpu, .pid = pid, .tid = tid};

	assert_int_equal(switch_log__note(&f->log, event, &sw), 0);
}

static void on(struct fixture *f, int cpu, uint64_t time_ns, pid_t tid)
{
	note(f, SWITCH_ON, cpu, time_ns, tid / 10 * 10, tid);
}

static void off(struct fixture *f, int cpu, uint64_t time_ns, pid_t tid)
{
	note(f, SWITCH_OFF, cpu, time_ns, tid / 10 * 10, tid);
}

static void test_cpus_are_merged_by_time(void **state)
{
	struct fixture *f = *state;

	on(f, 3, 110, 11);
	off(f, 3, 120, 11);
	on(f, 3, 150, 12);
	on(f, 0, 115, 21);
	off(f, 0, 140, 21);
	assert_string_equal(text_of(f), "110/3:11 115/0:21 120/3:0 140/0:0 150/3:12");
}

static void test_who_leaves_first_was_there_from_the_start(void **state)
{
	struct fixture *f = *state;

	off(f, 0, 130, 11);
	on(f, 1, 140, 21);
	off(f, 1, 150, 21);
	assert_string_equal(text_of(f), "100/0:11 130/0:0 140/1:21 150/1:0");
}

static void test_who_left_before_the_start_is_nobody(void **state)
{
	struct fixture *f = *state;

	off(f, 0, 90, 11);
	/* A thread that is being released has no tid. */
	note(f, SWITCH_OFF, 1, 130, -1, -1);
	assert_string_equal(text_of(f), "90/0:0 130/1:0");
}

static void test_began_counts_where_nothing_else_is_known(void **state)
{
	struct fixture *f = *state;

	note(f, SWITCH_BEGAN, 0, 105, 10, 11);
	on(f, 1, 110, 21);
	note(f, SWITCH_BEGAN, 1, 120, 10, 11);
	assert_string_equal(text_of(f), "105/0:11 110/1:21");
}

static void test_after_a_loss_nobody_is_known(void **state)
{
	struct fixture *f = *state;

	on(f, 0, 110, 11);
	note(f, SWITCH_LOST, 0, 200, 0, 0);
	on(f, 0, 210, 12);
	assert_string_equal(text_of(f), "110/0:11 110/0:0 210/0:12");
}

/* A trace of a third of the ring at each time, by the position in the ring. */
static void trace(struct fixture *f, int cpu, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t head = 0;

	for (uint64_t t = from_ns; t <= to_ns; t += 10) {
		on(f, cpu, t, 11);
		off(f, cpu, t + 4, 11);
		head += RING / 3;
		assert_int_equal(switch_log__traced(&f->log, cpu, t + 5, head % RING), 0);
	}
}

static void test_what_the_ring_still_holds_is_kept(void **state)
{
	struct fixture *f = *state;
	struct recording rec;

	trace(f, 0, 110, 10000);
	on(f, 1, 105, 21);
	recording__init(&rec);
	assert_int_equal(switch_log__add_to(&f->log, &rec), 0);
	/* Two rings at most, and one at least; the other CPU's is as old as it was. */
	assert_in_range(rec.switches.n, 2 * 4 + 1, 2 * 8 + 1);
	assert_int_equal(rec.switches.v[0].time_ns, 105);
	assert_in_range(rec.switches.v[1].time_ns, 9900, 9970);
	assert_true(switch_log__has(&f->log, 20));
	assert_false(switch_log__has(&f->log, 30));
	recording__fini(&rec);
}

static void test_a_ring_that_has_room_forgets_nothing(void **state)
{
	struct fixture *f = *state;

	trace(f, 0, 110, 120);
	assert_string_equal(text_of(f), "110/0:11 114/0:0 120/0:11 124/0:0");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_cpus_are_merged_by_time),
		TEST(test_who_leaves_first_was_there_from_the_start),
		TEST(test_who_left_before_the_start_is_nobody),
		TEST(test_began_counts_where_nothing_else_is_known),
		TEST(test_after_a_loss_nobody_is_known),
		TEST(test_what_the_ring_still_holds_is_kept),
		TEST(test_a_ring_that_has_room_forgets_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
