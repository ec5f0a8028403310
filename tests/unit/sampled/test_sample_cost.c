// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "said.h"
#include "session/session_internal.h"
#include "stderr_capture.h"

static void test_a_share_of_the_time_buys_so_many_samples(void **state)
{
	struct sample_cost cost = {.sample_ns = 20000};
	struct sample_load load = {.cpu_ns = 1000000000};

	assert_int_equal(sample_cost__rate(&cost, &load, 10000), 500);
	assert_int_equal(sample_cost__rate(&cost, &load, 5000), 250);
	cost.sample_ns = 2000;
	assert_int_equal(sample_cost__rate(&cost, &load, 10000), 5000);
}

static void test_what_switches_cost_is_not_there_for_samples(void **state)
{
	struct sample_cost cost = {.sample_ns = 20000, .switch_ns = 1000};
	struct sample_load load = {.cpu_ns = 500000000, .switches = 2500};

	/* Half of one percent is left. */
	assert_int_equal(sample_cost__rate(&cost, &load, 10000), 250);
	load.switches = 5001;
	assert_int_equal(sample_cost__rate(&cost, &load, 10000), 0);
}

static void test_a_process_that_sleeps_has_no_switches_to_pay(void **state)
{
	struct sample_cost cost = {.sample_ns = 10000, .switch_ns = 1000};
	struct sample_load load = {.switches = 3};

	assert_int_equal(sample_cost__rate(&cost, &load, 10000), 1000);
}

static void test_a_cost_too_small_to_see_is_no_division(void **state)
{
	struct sample_cost cost = {0};
	struct sample_load load = {.cpu_ns = 1000000000};

	assert_int_equal(sample_cost__rate(&cost, &load, 10000), 1000000);
}

static void test_a_sample_costs_more_than_a_timer_interrupt(void **state)
{
	assert_false(sample_cost__is_possible(0));
	assert_false(sample_cost__is_possible(10));
	assert_true(sample_cost__is_possible(700));
}

static void test_a_threshold_near_the_cost_of_a_sample_is_warned_of(void **state)
{
	struct overhead o = {.cost.sample_ns = 18000, .hz = 1000};
	struct stderr_capture said;

	stderr_capture__begin(&said);
	overhead__say_near(&o, 0);
	overhead__say_near(&o, UINT64_MAX);
	overhead__say_near(&o, 36000);
	stderr_capture__end(&said);
	assert_string_equal(said.text, "");
	stderr_capture__begin(&said);
	overhead__say_near(&o, 28000);
	stderr_capture__end(&said);
	ASSERT_WARNING(said.text, TEXT_near_a_sample, "28.0 us", "18.0 us");
	ASSERT_HINT(said.text, TEXT_fewer_stacks, 100u);
	/* Once, and not if the cost is not known. */
	stderr_capture__begin(&said);
	overhead__say_near(&o, 28000);
	o = (struct overhead){.hz = 1000};
	overhead__say_near(&o, 1);
	stderr_capture__end(&said);
	assert_string_equal(said.text, "");
}

static void test_the_default_is_lower_where_samples_are_dear(void **state)
{
	struct sample_options options = {.rate = SAMPLE_RATE_AUTO};
	struct sample_cost cost = {.sample_ns = 20000};
	struct sample_load load = {.cpu_ns = 1000000000};

	assert_int_equal(overhead__rate(&options, &cost, &load), 1000);
	assert_float_equal(sample_cost__share(&cost, 1000), 0.02, 1e-9);
	cost.sample_ns = 100000;
	assert_int_equal(overhead__rate(&options, &cost, &load), 500);
	/* Whoever asks for it gets it. */
	options.rate = 1000;
	assert_int_equal(overhead__rate(&options, &cost, &load), 1000);
	options.max_overhead_ppm = 10000;
	assert_int_equal(overhead__rate(&options, &cost, &load), 100);
	options.rate = 30;
	assert_int_equal(overhead__rate(&options, &cost, &load), 30);
	/* None would be no recorder. */
	options.max_overhead_ppm = 10;
	assert_int_equal(overhead__rate(&options, &cost, &load), 10);
	/* Nothing could be measured. */
	options = (struct sample_options){.rate = SAMPLE_RATE_AUTO};
	assert_int_equal(overhead__rate(&options, &(struct sample_cost){0}, &load), 1000);
}

/* Our own: what was spun and slept before is not part of it. */
static void test_a_load_is_what_was_done_meanwhile(void **state)
{
	struct sample_load load;

	for (int i = 0; i < 50; i++) {
		for (clock_t end = clock() + CLOCKS_PER_SEC / 1000; clock() < end;)
			;
		usleep(10);
	}
	assert_int_equal(sample_load__measure(getpid(), 5, &load), 0);
	/* The sleep itself, and nothing of what was before. */
	assert_in_range(load.switches, 1, 20);
	assert_in_range(load.cpu_ns, 0, 20000000);
	assert_true(sample_load__measure(0x3fffffff, 1, &load) < 0);
}

/* A second of CPU time each time, and so many switches in it. */
static bool passes(struct overhead *o, const struct sample_options *options, uint64_t switches)
{
	struct sample_load now = {o->seen.cpu_ns + 1000000000, o->seen.switches + switches, 0, 0};

	return overhead__take(o, options, &now);
}

static void test_the_rate_follows_the_switches(void **state)
{
	struct sample_options options = {
		.rate = SAMPLE_RATE_AUTO, .max_overhead = "1%", .max_overhead_ppm = 10000};
	struct overhead o = {
		.cost = {.sample_ns = 20000, .switch_ns = 1000}, .hz = 500, .first_hz = 500};

	/* What it did before it was looked at is not known to be recent. */
	assert_false(passes(&o, &options, 100000));
	assert_false(passes(&o, &options, 0));
	assert_int_equal(o.hz, 500);
	/* Half of the percent, then all of it and more. */
	for (int i = 0; i < 10; i++)
		passes(&o, &options, 5000);
	assert_in_range(o.hz, 240, 300);
	assert_false(o.is_broken);
	for (int i = 0; i < 10; i++)
		passes(&o, &options, 20000);
	assert_int_equal(o.hz, 10);
	assert_true(o.is_broken);
	/* A little more or less is no reason. */
	for (int i = 0; i < 20; i++)
		passes(&o, &options, 0);
	assert_in_range(o.hz, 400, 500);
	assert_false(passes(&o, &options, 100));
}

static void test_what_ended_is_not_counted(void **state)
{
	struct sample_options options = {.rate = SAMPLE_RATE_AUTO, .max_overhead_ppm = 10000};
	struct overhead o = {.cost = {.sample_ns = 20000, .switch_ns = 1000}, .hz = 500};
	struct sample_load less = {.cpu_ns = 1, .switches = 1};

	passes(&o, &options, 10);
	assert_false(overhead__take(&o, &options, &less));
	assert_false(passes(&o, &options, 10));
	assert_int_equal(o.hz, 500);
}

#define SECOND 1000000000ull

static void test_a_long_threshold_is_looked_back_over_with_fewer_stacks(void **state)
{
	struct lookback_need need = {
		.hz = 1000, .back_ns = SECOND, .need_ns = 6 * SECOND, .clock_share = 1};

	/* A sixth of them, and a tenth less than that. */
	assert_in_range(overhead__rate_to_look_back(&need), 150, 152);
	/* Switches write half of it: nothing is left for the clock. */
	need.clock_share = 0.5;
	assert_int_equal(overhead__rate_to_look_back(&need), 0);
	need.back_ns = 4 * SECOND;
	assert_in_range(overhead__rate_to_look_back(&need), 210, 214);
	/* The rest would not show what a call of the threshold does. */
	need = (struct lookback_need){
		.hz = 1000, .back_ns = SECOND / 100, .need_ns = SECOND / 10, .clock_share = 1};
	assert_int_equal(overhead__rate_to_look_back(&need), 0);
	need = (struct lookback_need){
		.hz = 1000, .back_ns = SECOND, .need_ns = 200 * SECOND, .clock_share = 1};
	assert_int_equal(overhead__rate_to_look_back(&need), 0);
	/* Nothing is known of who writes. */
	need.clock_share = 0;
	assert_int_equal(overhead__rate_to_look_back(&need), 0);
}

static void test_max_overhead_does_not_raise_what_the_lookback_needs(void **state)
{
	struct sample_options options = {.rate = SAMPLE_RATE_AUTO, .max_overhead_ppm = 10000};
	struct overhead o = {.cost = {.sample_ns = 20000}, .hz = 75, .most_hz = 75};

	passes(&o, &options, 10);
	assert_false(passes(&o, &options, 10));
	assert_int_equal(o.hz, 75);
}

/* Who has given the rate needs only to leave out the other option. */
static void test_the_hint_knows_what_was_given(void **state)
{
	struct sample_options given = {.max_overhead_ppm = 10000, .rate = 50},
			      automatic = {.max_overhead_ppm = 10000, .rate = SAMPLE_RATE_AUTO};
	struct stderr_capture said;
	const char *text;

	stderr_capture__begin(&said);
	assert_int_equal(overhead__refuse(&given, -EBUSY), -EBUSY);
	text = stderr_capture__end(&said);
	ASSERT_ERROR(text, TEXT_cannot_measure_samples,
		     "other work on this machine disturbs the measurement");
	ASSERT_HINT(text, TEXT_leave_out_max_overhead, 50);
	stderr_capture__begin(&said);
	assert_int_equal(overhead__refuse(&automatic, -EBUSY), -EBUSY);
	ASSERT_HINT(stderr_capture__end(&said), TEXT_set_sample_rate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_rate_follows_the_switches),
		cmocka_unit_test(test_what_ended_is_not_counted),
		cmocka_unit_test(test_a_long_threshold_is_looked_back_over_with_fewer_stacks),
		cmocka_unit_test(test_max_overhead_does_not_raise_what_the_lookback_needs),
		cmocka_unit_test(test_a_share_of_the_time_buys_so_many_samples),
		cmocka_unit_test(test_what_switches_cost_is_not_there_for_samples),
		cmocka_unit_test(test_a_process_that_sleeps_has_no_switches_to_pay),
		cmocka_unit_test(test_a_cost_too_small_to_see_is_no_division),
		cmocka_unit_test(test_a_sample_costs_more_than_a_timer_interrupt),
		cmocka_unit_test(test_a_threshold_near_the_cost_of_a_sample_is_warned_of),
		cmocka_unit_test(test_the_default_is_lower_where_samples_are_dear),
		cmocka_unit_test(test_a_load_is_what_was_done_meanwhile),
		cmocka_unit_test(test_the_hint_knows_what_was_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
