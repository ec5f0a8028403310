// SPDX-License-Identifier: MIT
/* Times from packets, worked out by hand: a crystal of 25 MHz, TSC 2 GHz, MTC every 8 of its ticks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "decode/pt_time.h"

static const struct rec_pt_config config = {
	.mtc_freq = 3, .nom_freq = 20, .tsc_ctc_num = 80, .tsc_ctc_den = 1};

#define PERIOD (8 * 80)

/* The payload of the MTC that comes n periods behind the TMA of start(). */
static uint8_t mtc(unsigned int n)
{
	return (uint8_t)((0x1203 >> 3) + n);
}

static void test_nothing_is_known_at_first(void **state)
{
	struct pt_time t;

	pt_time__init(&t, &config);
	pt_time__on_cbr(&t, 10);
	pt_time__on_cyc(&t, 100);
	pt_time__on_mtc(&t, 7);
	assert_int_equal(t.tsc, 0);
	pt_time__on_tsc(&t, 5000);
	assert_int_equal(t.tsc, 5000);
}

/* At half the speed of the TSC a cycle is two of its ticks. */
static void test_cycles(void **state)
{
	struct pt_time t;

	pt_time__init(&t, &config);
	pt_time__on_tsc(&t, 5000);
	pt_time__on_cyc(&t, 100);
	assert_int_equal(t.tsc, 5000);
	pt_time__on_cbr(&t, 10);
	pt_time__on_cyc(&t, 100);
	pt_time__on_cyc(&t, 1);
	assert_int_equal(t.tsc, 5202);
	/* What ran before is not counted at the new speed. */
	pt_time__on_cbr(&t, 20);
	pt_time__on_cyc(&t, 10);
	assert_int_equal(t.tsc, 5212);
	pt_time__on_tsc(&t, 9000);
	pt_time__on_cyc(&t, 10);
	assert_int_equal(t.tsc, 9010);
}

/* The TSC was read 30 ticks behind CTC 0x1203, which lies 3 ticks into its period. */
static void start(struct pt_time *t)
{
	pt_time__init(t, &config);
	pt_time__on_tsc(t, 100000);
	pt_time__on_tma(t, 0x1203, 30);
}

static void test_mtc(void **state)
{
	const uint64_t base = 100000 - 30 - 3 * 80;
	struct pt_time t;

	start(&t);
	pt_time__on_mtc(&t, mtc(1));
	assert_int_equal(t.tsc, base + PERIOD);
	pt_time__on_mtc(&t, mtc(2));
	assert_int_equal(t.tsc, base + 2 * PERIOD);
	/* Some are lost in an overflow; 8 bits run over. */
	pt_time__on_mtc(&t, mtc(252));
	assert_int_equal(t.tsc, base + 252 * PERIOD);
	pt_time__on_mtc(&t, mtc(257));
	assert_int_equal(t.tsc, base + 257 * PERIOD);
}

static void test_an_mtc_without_tma_tells_nothing(void **state)
{
	struct pt_time t;

	start(&t);
	pt_time__on_tsc(&t, 200000);
	pt_time__on_mtc(&t, 1);
	assert_int_equal(t.tsc, 200000);
}

/* Cycles count from the last MTC; an estimate that was too late does not run back. */
static void test_mtc_and_cycles(void **state)
{
	const uint64_t base = 100000 - 30 - 3 * 80;
	struct pt_time t;

	start(&t);
	pt_time__on_cbr(&t, 10);
	pt_time__on_mtc(&t, mtc(1));
	pt_time__on_cyc(&t, 7);
	assert_int_equal(t.tsc, base + PERIOD + 14);
	pt_time__on_cyc(&t, 400);
	assert_int_equal(t.tsc, base + PERIOD + 814);
	pt_time__on_mtc(&t, mtc(2));
	assert_int_equal(t.tsc, base + PERIOD + 814);
	pt_time__on_cyc(&t, 100);
	assert_int_equal(t.tsc, base + 2 * PERIOD + 200);
}

/* Where CBR means nothing, one period tells how long a cycle is in the next. */
static void test_cycles_without_a_known_speed(void **state)
{
	const struct rec_pt_config unknown = {.mtc_freq = 3, .tsc_ctc_num = 80, .tsc_ctc_den = 1};
	struct pt_time t;
	uint64_t tsc;

	pt_time__init(&t, &unknown);
	pt_time__on_tsc(&t, 100000);
	pt_time__on_tma(&t, 0, 0);
	pt_time__on_cbr(&t, 10);
	pt_time__on_mtc(&t, 1);
	pt_time__on_cyc(&t, PERIOD / 4);
	assert_int_equal(t.tsc, 100000 + PERIOD);
	pt_time__on_mtc(&t, 2);
	tsc = t.tsc;
	pt_time__on_cyc(&t, 10);
	assert_int_equal(t.tsc, tsc + 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_known_at_first),
		cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_mtc),
		cmocka_unit_test(test_an_mtc_without_tma_tells_nothing),
		cmocka_unit_test(test_mtc_and_cycles),
		cmocka_unit_test(test_cycles_without_a_known_speed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
