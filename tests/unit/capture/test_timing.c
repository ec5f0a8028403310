// SPDX-License-Identifier: MIT
#include "capture/pt/pmu.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "stderr_capture.h"

/* A Skylake: caps as its sysfs has them. */
static const struct pt_pmu skylake = {
	.pt = {0, 1},
	.cyc = {1, 1},
	.mtc = {9, 1},
	.tsc = {10, 1},
	.noretcomp = {11, 1},
	.branch = {13, 1},
	.mtc_period = {14, 4},
	.cyc_thresh = {19, 4},
	.psb_period = {24, 4},
	.cap_mtc = 1,
	.cap_psb_cyc = 1,
	.cap_mtc_periods = 0x249,
	.cap_cycle_thresholds = 0x1fff,
	.cap_psb_periods = 0x3f,
};
/* A Broadwell: neither MTC nor cycles. */
static const struct pt_pmu broadwell = {
	.pt = {0, 1}, .tsc = {10, 1}, .noretcomp = {11, 1}, .branch = {13, 1}};

#define BASE (1u | 1u << 10 | 1u << 13)

static uint64_t config_of(const char *text, const struct pt_pmu *pmu)
{
	struct pt_timing timing;
	uint64_t config;

	assert_int_equal(pt_timing__parse(text, &timing), 0);
	assert_int_equal(pt_timing__config(&timing, pmu, &config), 0);
	return config;
}

/* Values of PTWRITE wherever there are some; power events where they are asked for. */
static void test_values_and_power_events(void **state)
{
	struct pt_pmu goldmont = skylake;
	struct stderr_capture capture;
	struct pt_timing timing;
	uint64_t config, values = 1u << 12 | 1u << 5;

	goldmont.ptw = (struct pt_field){12, 1};
	goldmont.fup_on_ptw = (struct pt_field){5, 1};
	goldmont.pwr_evt = (struct pt_field){4, 1};
	goldmont.cap_ptwrite = goldmont.cap_power_events = 1;
	assert_int_equal(config_of("low", &goldmont), config_of("low", &skylake) | values);
	assert_int_equal(config_of("custom:ptw", &goldmont), BASE | 1u << 12);
	assert_int_equal(config_of("custom:ptw,fup_on_ptw,pwr_evt", &goldmont),
			 BASE | values | 1u << 4);
	goldmont.cap_ptwrite = 0;
	assert_int_equal(config_of("low", &goldmont), config_of("low", &skylake));
	assert_int_equal(pt_timing__parse("custom:ptw", &timing), 0);
	stderr_capture__begin(&capture);
	assert_int_equal(pt_timing__config(&timing, &goldmont, &config), -EINVAL);
	assert_non_null(strstr(stderr_capture__end(&capture), "does not support 'ptw'"));
}

/* Event Trace wherever it can be had; power events where they are asked for, or refused. */
static void test_events_and_power(void **state)
{
	struct pt_pmu newer = skylake;
	struct pt_timing timing = PT_TIMING_NORMAL;
	struct stderr_capture capture;
	uint64_t config;

	newer.event = (struct pt_field){31, 1};
	newer.pwr_evt = (struct pt_field){4, 1};
	assert_int_equal(config_of("normal", &newer), config_of("normal", &skylake));
	newer.cap_event_trace = newer.cap_power_events = 1;
	assert_int_equal(config_of("normal", &newer),
			 config_of("normal", &skylake) | PT_CONFIG_EVENT);
	assert_int_equal(config_of("custom:event", &newer), BASE | PT_CONFIG_EVENT);
	assert_int_equal(config_of("custom:cyc", &newer), config_of("custom:cyc", &skylake));
	timing.pwr_evt = true;
	assert_int_equal(pt_timing__config(&timing, &newer, &config), 0);
	assert_int_equal(config, config_of("normal", &newer) | 1u << 4);
	stderr_capture__begin(&capture);
	assert_int_equal(pt_timing__config(&timing, &skylake, &config), -EINVAL);
	assert_non_null(strstr(stderr_capture__end(&capture), "-trace-power: "));
	/* Without cycle packets the rest stays. */
	newer.cap_psb_cyc = 0;
	stderr_capture__begin(&capture);
	assert_int_equal(pt_timing__config(&timing, &newer, &config), 0);
	stderr_capture__end(&capture);
	assert_int_equal(config, config_of("low", &newer) | 1u << 4);
}

static void test_the_three_levels(void **state)
{
	assert_int_equal(config_of("low", &skylake), BASE | 1u << 9 | 3u << 14);
	assert_int_equal(config_of("normal", &skylake), BASE | 1u << 9 | 1u << 1 | 1u << 19);
	assert_int_equal(config_of("high", &skylake),
			 BASE | 1u << 9 | 1u << 1 | 1u << 19 | 1u << 11);
}

static void test_levels_take_what_there_is(void **state)
{
	struct pt_pmu coarse = skylake;
	struct stderr_capture capture;

	assert_int_equal(config_of("low", &broadwell), BASE);
	stderr_capture__begin(&capture);
	assert_int_equal(config_of("high", &broadwell), BASE);
	assert_non_null(strstr(stderr_capture__end(&capture), "cycle packets and MTC packets"));
	/* Only period 6: the nearest to 3. */
	coarse.cap_mtc_periods = 1u << 6;
	assert_int_equal(config_of("low", &coarse), BASE | 1u << 9 | 6u << 14);
}

static void test_custom_is_taken_to_the_letter(void **state)
{
	assert_int_equal(config_of("custom:cyc=1,cyc_thresh=4,mtc,mtc_period=9,psb_period=5,"
				   "noretcomp=0",
				   &skylake),
			 BASE | 1u << 1 | 4u << 19 | 1u << 9 | 9u << 14 | 5u << 24);
	assert_int_equal(config_of("custom:noretcomp", &skylake), BASE | 1u << 11);
}

/* What is said when the text is no timing, or the PMU has it not. */
static void assert_refused(const char *text, const struct pt_pmu *pmu, const char *words)
{
	struct pt_timing timing;
	uint64_t config;
	struct stderr_capture capture;
	const char *said;
	int err;

	stderr_capture__begin(&capture);
	err = pt_timing__parse(text, &timing);
	if (!err && pmu)
		err = pt_timing__config(&timing, pmu, &config);
	said = stderr_capture__end(&capture);
	assert_int_equal(err, -EINVAL);
	if (!strstr(said, words))
		fail_msg("'%s' said: %s", text, said);
	assert_non_null(strstr(said, "hint: "));
}

static void test_what_is_no_timing(void **state)
{
	assert_refused("fast", NULL, "'fast'");
	assert_refused("custom", NULL, "custom:TERMS");
	assert_refused("custom:", NULL, "''");
	assert_refused("custom:cyc,,mtc", NULL, "''");
	assert_refused("custom:cyc=2", NULL, "'cyc=2'");
	assert_refused("custom:mtc_period=16", NULL, "'mtc_period=16'");
	assert_refused("custom:mtc_period=", NULL, "'mtc_period='");
	assert_refused("custom:mtc_period=-1", NULL, "'mtc_period=-1'");
	assert_refused("custom:mtc_period=3x", NULL, "'mtc_period=3x'");
	assert_refused("custom:tsc", NULL, "'tsc'");
}

static void test_what_the_pmu_lacks(void **state)
{
	struct pt_pmu coarse = skylake;

	assert_refused("custom:cyc", &broadwell, "not support 'cyc'");
	assert_refused("custom:mtc", &broadwell, "not support 'mtc'");
	assert_refused("custom:mtc,mtc_period=4", &skylake, "supported: 0 3 6 9");
	assert_refused("custom:psb_period=6", &skylake, "not support psb_period=6");
	assert_refused("custom:cyc_thresh=13", &skylake, "not support cyc_thresh=13");
	assert_refused("custom:psb_period=2", &broadwell, "supported: 0");
	assert_refused("custom:mtc_period=3", &broadwell, "supported: none at all");
	/* The kernel refuses a period of 0 that is not listed. */
	coarse.cap_mtc_periods = 1u << 6;
	assert_refused("custom:mtc", &coarse, "supported: 6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_and_power),
		cmocka_unit_test(test_the_three_levels),
		cmocka_unit_test(test_values_and_power_events),
		cmocka_unit_test(test_levels_take_what_there_is),
		cmocka_unit_test(test_custom_is_taken_to_the_letter),
		cmocka_unit_test(test_what_is_no_timing),
		cmocka_unit_test(test_what_the_pmu_lacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
