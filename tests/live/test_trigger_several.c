// SPDX-License-Identifier: MIT
/* Several probes, one trigger: which of them hit, and what is measured between them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "trigger_fixture.h"

void call_inner(void (*function)(void));

/* The fixture's events are the first function's. */
struct second {
	int entry, on_return;
};

static void attach_second(struct fixture *fixture, struct second *second, const void *function,
			  bool returns)
{
	pid_t pid = fixture->child.pid;
	struct trigger_event events[4] = {{.fd = fixture->entry},
					  {.fd = fixture->on_return, .kind = TRIGGER_RETURN}};
	size_t n = returns ? 2 : 1;

	second->on_return = -1;
	second->entry = own_code__probe(pid, (uintptr_t)function, false);
	assert_true(second->entry >= 0);
	events[n++] = (struct trigger_event){.fd = second->entry, .probe = 1};
	if (returns) {
		second->on_return = own_code__probe(pid, (uintptr_t)function, true);
		assert_true(second->on_return >= 0);
		events[n++] = (struct trigger_event){
			.fd = second->on_return, .kind = TRIGGER_RETURN, .probe = 1};
	}
	assert_int_equal(trigger__attach_all(fixture->trigger, events, n), 0);
}

static void close_second(struct second *second)
{
	close_event(&second->entry);
	close_event(&second->on_return);
}

static void test_any_of_them_triggers(void **state)
{
	struct fixture *fixture = *state;
	struct second second;
	struct mt_hit hit;

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	attach_second(fixture, &second, hit_me_no_fp, false);
	arm(fixture);
	run(fixture, HIT_NO_FP, 0);
	hit = expect_hit(fixture);
	assert_true(hit.probe_ip == (uintptr_t)hit_me_no_fp);
	assert_int_equal(count_of(fixture->entry), 0);
	assert_int_equal(count_of(second.entry), 1);
	arm(fixture);
	run(fixture, HIT, 3);
	hit = expect_hit(fixture);
	assert_true(hit.probe_ip == (uintptr_t)hit_me);
	assert_int_equal(hit.sequence, 2);
	assert_int_equal(stats_of(fixture).hits, 4);
	assert_int_equal(count_of(fixture->entry), 1);
	assert_int_equal(count_of(second.entry), 1);
	close_second(&second);
}

/* A threshold, and a delay that is below it on a busy machine, too; twice that is above. */
#define LONG_MS 1000
#define PART_MS 600

static void test_a_delay_is_between_any_two(void **state)
{
	struct fixture *fixture = *state;
	struct second second;
	struct mt_hit hit;

	attach_to(fixture, (struct trigger_config){.delay_thresh_ns = LONG_MS * MS}, hit_me);
	attach_second(fixture, &second, hit_me_no_fp, false);
	arm(fixture);
	run(fixture, HIT, 1);
	sleep_ms(PART_MS);
	run(fixture, HIT_NO_FP, 0);
	run(fixture, HIT_LATE, PART_MS);
	expect_no_hit(fixture); /* of hit_me() alone they would be further apart */
	sleep_ms(LONG_MS);
	run(fixture, HIT_NO_FP, 0);
	hit = expect_hit(fixture);
	assert_true(hit.probe_ip == (uintptr_t)hit_me_no_fp);
	assert_int_equal(hit.sequence, 4);
	close_second(&second);
}

/* One inside the other. */
static void test_durations_of_nested_functions(void **state)
{
	struct fixture *fixture = *state;
	struct second second;
	struct mt_stats stats;
	struct mt_hit hit;

	attach_to(fixture, (struct trigger_config){.duration_thresh_ns = 1}, call_outer);
	attach_second(fixture, &second, call_inner, true);
	arm(fixture);
	run(fixture, HIT_IN_CALL, 0);
	hit = expect_hit(fixture);
	assert_int_equal(hit.reason, MT_HIT_DURATION);
	assert_true(hit.probe_ip == (uintptr_t)call_inner);
	assert_int_equal(hit.sequence, 2);
	stats = stats_of(fixture);
	assert_int_equal(histogram_sum(&stats), 2);
	close_event(&second.on_return);
	attach_second(fixture, &second, hit_me, true);
	arm(fixture);
	run(fixture, TIMED, 0);
	run(fixture, HIT_IN_CALL, 0);
	assert_true(expect_hit(fixture).probe_ip == (uintptr_t)hit_me);
	close_second(&second);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_any_of_them_triggers),
		LIVE(test_a_delay_is_between_any_two),
		LIVE(test_durations_of_nested_functions),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
