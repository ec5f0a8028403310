// SPDX-License-Identifier: MIT
/* A trigger that stays attached between two snapshots: what comes is counted, and is of neither. */
#include "trigger_fixture.h"

static void test_what_comes_between_two_armings_is_counted(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	arm(fixture);
	run(fixture, HIT, 6);
	assert_int_equal(expect_hit(fixture).sequence, 1);
	trigger__freeze(fixture->trigger);
	run(fixture, HIT, 10);
	trigger__thaw(fixture->trigger);
	run(fixture, HIT, 100);
	expect_no_hit(fixture);
	assert_int_equal(stats_of(fixture).unarmed, 115);
	arm(fixture);
	run(fixture, HIT, 1);
	assert_int_equal(expect_hit(fixture).sequence, 117);
}

static void test_frozen_it_is_disarmed(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	arm(fixture);
	trigger__freeze(fixture->trigger);
	assert_false(trigger__is_armed(fixture->trigger));
	run(fixture, HIT, 3);
	expect_no_hit(fixture);
	assert_int_equal(count_of(fixture->entry), 0);
}

/* It came while the snapshot was taken for another reason, and nobody has looked since. */
static void test_an_old_hit_is_not_the_latest(void **state)
{
	struct fixture *fixture = *state;
	struct mt_hit old, hit;

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	arm(fixture);
	run(fixture, HIT, 1);
	trigger__freeze(fixture->trigger);
	trigger__thaw(fixture->trigger);
	old = expect_hit(fixture);
	assert_false(trigger__is_latest(fixture->trigger, &old));
	arm(fixture);
	run(fixture, HIT, 1);
	hit = expect_hit(fixture);
	assert_true(trigger__is_latest(fixture->trigger, &hit));
	assert_false(trigger__is_latest(fixture->trigger, &old));
}

static int count(void *ctx, const struct mt_entry *entry)
{
	assert_true(entry->start_ns > 0 && entry->tid > 0);
	(*(int *)ctx)++;
	return 0;
}

static int entries_of(const struct fixture *fixture)
{
	int n = 0;

	assert_int_equal(trigger__entries(fixture->trigger, count, &n), 0);
	return n;
}

static void test_frozen_nothing_is_logged(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture,
		  (struct trigger_config){.sampling = true, .delay_thresh_ns = 1000000 * MS},
		  hit_me);
	arm(fixture);
	run(fixture, HIT, 3);
	trigger__freeze(fixture->trigger);
	run(fixture, HIT, 4);
	assert_int_equal(entries_of(fixture), 3);
	trigger__thaw(fixture->trigger);
	run(fixture, HIT, 5);
	assert_int_equal(entries_of(fixture), 8);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_what_comes_between_two_armings_is_counted),
		LIVE(test_frozen_it_is_disarmed),
		LIVE(test_an_old_hit_is_not_the_latest),
		LIVE(test_frozen_nothing_is_logged),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
