// SPDX-License-Identifier: MIT
/* Durations: matching returns with entries, on this kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "trigger_fixture.h"
#include "util/insn.h"

/* Of the group of tests that runs: the instruction that returns is probed. */
static bool by_insn;

static void attach_duration(struct fixture *fixture)
{
	attach_to(fixture,
		  (struct trigger_config){.duration_thresh_ns = THRESH_NS,
					  .returns_by_insn = by_insn},
		  timed);
	arm(fixture);
}

/* One slow call, `hits` hits in all of which the slow one was the `sequence`th. */
static void expect_slow_call(const struct fixture *fixture, uint64_t hits, uint64_t sequence)
{
	struct mt_hit hit = expect_hit(fixture);

	assert_int_equal(hit.reason, MT_HIT_DURATION);
	assert_int_equal(hit.sequence, sequence);
	assert_in_range(hit.value_ns, SLOW_MS * MS, 10 * SLOW_MS * MS);
	expect_no_hit(fixture);
	assert_int_equal(stats_of(fixture).hits, hits);
	assert_int_equal(count_of(fixture->entry), 0);
	assert_int_equal(count_of(fixture->on_return), 1);
}

static uint64_t durations(const struct fixture *fixture)
{
	struct mt_stats stats = stats_of(fixture);

	return histogram_sum(&stats);
}

static void test_duration_of_the_slow_call(void **state)
{
	struct fixture *fixture = *state;

	attach_duration(fixture);
	run(fixture, TIMED, 0);
	sleep_ms(SLOW_MS); /* between calls: no duration */
	run(fixture, TIMED, 0);
	expect_no_hit(fixture);
	run(fixture, TIMED, SLOW_MS);
	run(fixture, TIMED, 0);
	expect_slow_call(fixture, 4, 3);
	assert_int_equal(durations(fixture), 4);
}

static void test_duration_in_recursion_is_the_outermost(void **state)
{
	struct fixture *fixture = *state;

	attach_duration(fixture);
	run(fixture, TIMED, 0);
	run(fixture, TIMED_NESTED, 5);
	expect_slow_call(fixture, 6, 2);
	assert_int_equal(durations(fixture), 6);
}

static void test_recursion_deeper_than_we_record(void **state)
{
	struct fixture *fixture = *state;

	attach_duration(fixture);
	run(fixture, TIMED_NESTED, MT_CALL_DEPTH + 5);
	expect_slow_call(fixture, MT_CALL_DEPTH + 5, 1);
	assert_int_equal(durations(fixture), MT_CALL_DEPTH);
	run(fixture, TIMED, 0);
	assert_int_equal(durations(fixture), MT_CALL_DEPTH + 1);
}

/* Calls that were left don't return, and what comes after is not measured from their entry. */
static void test_longjmp_out_of_calls(void **state)
{
	struct fixture *fixture = *state;

	attach_duration(fixture);
	run(fixture, TIMED_JUMP_OUT, 3);
	run(fixture, TIMED, 0);
	assert_int_equal(durations(fixture), 1);
	run(fixture, TIMED_JUMP_OUT, 1);
	run(fixture, TIMED_DEEP, 0); /* below what was left, so that it is not swept */
	assert_int_equal(durations(fixture), 2);
	expect_no_hit(fixture);
	run(fixture, TIMED, SLOW_MS);
	expect_slow_call(fixture, 7, 7);
}

static void test_many_longjmps_do_not_fill_the_calls(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture,
		  (struct trigger_config){
			  .count_only = true, .watch_duration = true, .returns_by_insn = by_insn},
		  timed);
	for (int i = 0; i < 3; i++)
		run(fixture, TIMED_JUMP_OUT, MT_CALL_DEPTH);
	run(fixture, TIMED, 0);
	assert_int_equal(durations(fixture), 1);
	assert_true(stats_of(fixture).max_ns < THRESH_NS);
}

static void test_longjmp_then_a_call_in_its_place(void **state)
{
	struct fixture *fixture = *state;

	attach_duration(fixture);
	run(fixture, TIMED_JUMP_AGAIN, 0);
	expect_no_hit(fixture);
	assert_int_equal(stats_of(fixture).hits, 2);
	assert_int_equal(durations(fixture), 1);
}

static void test_longjmp_inside_a_call(void **state)
{
	struct fixture *fixture = *state;

	attach_duration(fixture);
	run(fixture, TIMED_JUMP_IN, 3);
	expect_slow_call(fixture, 4, 1);
	assert_int_equal(durations(fixture), 1);
}

/* What has another stack pointer than the call's entry does not end it. */
static void test_an_instruction_amid_the_call_ends_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct trigger_event events[3];
	int amid;

	if (!by_insn)
		return;
	attach_duration(fixture);
	/* The pop in front of the return. */
	amid = own_code__probe(fixture->child.pid, (uintptr_t)timed + exit_of(timed) - 1, false);
	assert_true(amid >= 0);
	events[0] = (struct trigger_event){.fd = fixture->entry};
	events[1] = (struct trigger_event){.fd = fixture->on_return, .kind = TRIGGER_RETURN};
	events[2] = (struct trigger_event){.fd = amid, .kind = TRIGGER_RETURN};
	assert_int_equal(trigger__attach_all(fixture->trigger, events, 3), 0);
	run(fixture, TIMED_NESTED, 5);
	expect_hit(fixture);
	assert_int_equal(durations(fixture), 5);
	assert_int_equal(count_of(fixture->on_return), 1);
	assert_int_equal(count_of(amid), 0);
	close(amid);
}

/* The processor says how often: all conditions, with all flags. */
static void test_a_conditional_jump_ends_a_call_where_it_is_taken(void **state)
{
	struct fixture *fixture = *state;
	const struct trigger_config config = {.count_only = true,
					      .watch_duration = true,
					      .returns_by_insn = true,
					      .duration_thresh_ns = 1};

	for (int n = 0; n < 16 && by_insn; n++) {
		const uint8_t *code = leave_if + LEAVE_IF_SIZE * n;
		const struct exit_part part = {code, LEAVE_IF_LEN, (uintptr_t)code};
		struct exit_sites sites;
		struct trigger_event events[2];
		int taken;

		attach_to(fixture, config, timed);
		close_event(&fixture->entry);
		close_event(&fixture->on_return);
		assert_int_equal(exit_sites__find(&part, NULL, NULL, &sites), 0);
		fixture->entry = own_code__probe(fixture->child.pid, part.vaddr, false);
		fixture->on_return = own_code__probe(fixture->child.pid,
						     part.vaddr + (uint64_t)sites.at[0], false);
		events[0] = (struct trigger_event){.fd = fixture->entry};
		events[1] = (struct trigger_event){.fd = fixture->on_return,
						   .kind = TRIGGER_RETURN,
						   .condition = sites.condition[0]};
		assert_int_equal(trigger__attach_all(fixture->trigger, events, 2), 0);
		taken = run(fixture, LEAVE_IF, n);
		assert_in_range(taken, 1, LEAVE_IF_TIMES - 1);
		assert_int_equal(stats_of(fixture).hits, LEAVE_IF_TIMES);
		assert_int_equal(durations(fixture), taken);
		remove_probes(fixture);
	}
}

/* The same of entries: what Go's check of its stack sends back counts when it comes again. */
static void test_a_hit_counts_under_its_condition(void **state)
{
	struct fixture *fixture = *state;
	const struct trigger_config config = {.count_only = true, .conditional_entries = true};

	for (int n = 0; n < 16 && by_insn; n++) {
		const uint8_t *code = leave_if + LEAVE_IF_SIZE * n;
		struct trigger_event event = {.condition = (uint8_t)(INSN_CONDITION | n)};
		int taken;

		attach_to(fixture, config, hit_me);
		event.fd =
			own_code__probe(fixture->child.pid, (uintptr_t)code + LEAVE_IF_JUMP, false);
		assert_true(event.fd >= 0);
		assert_int_equal(insn__condition(code + LEAVE_IF_JUMP, 6), event.condition);
		assert_int_equal(trigger__attach_all(fixture->trigger, &event, 1), 0);
		taken = run(fixture, LEAVE_IF, n);
		assert_int_equal(stats_of(fixture).hits, taken);
		close(event.fd);
		remove_probes(fixture);
	}
}

static void test_watched_durations_only_count(void **state)
{
	struct fixture *fixture = *state;
	struct mt_stats stats;

	attach_to(fixture,
		  (struct trigger_config){
			  .count_only = true, .watch_duration = true, .returns_by_insn = by_insn},
		  timed);
	arm(fixture);
	run(fixture, TIMED, SLOW_MS);
	run(fixture, TIMED, 0);
	stats = stats_of(fixture);
	assert_int_equal(stats.hits, 2);
	assert_int_equal(histogram_sum(&stats), 2);
	assert_true(stats.max_ns >= SLOW_MS * MS);
	expect_no_hit(fixture);
	assert_int_equal(count_of(fixture->on_return), 0);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_duration_of_the_slow_call),
		LIVE(test_duration_in_recursion_is_the_outermost),
		LIVE(test_recursion_deeper_than_we_record),
		LIVE(test_longjmp_out_of_calls),
		LIVE(test_many_longjmps_do_not_fill_the_calls),
		LIVE(test_longjmp_then_a_call_in_its_place),
		LIVE(test_longjmp_inside_a_call),
		LIVE(test_an_instruction_amid_the_call_ends_nothing),
		LIVE(test_a_conditional_jump_ends_a_call_where_it_is_taken),
		LIVE(test_a_hit_counts_under_its_condition),
		LIVE(test_watched_durations_only_count),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	int failed = run_with_both(run_group);

	by_insn = true;
	return run_with_both(run_group) + failed;
}
