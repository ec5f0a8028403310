// SPDX-License-Identifier: MIT
/* TMA, MTC and CYC packets: when they come, and what they say. */
#include "pt_stream_fixture.h"

#define A 0x401000
#define B 0x401100

/* The CTC ticks every 100 TSC ticks; an MTC packet every 200. The core is half as fast as the TSC.
 */
#define CTC_TICKS 100
#define PERIOD	  200

/* Enabled at A, at time 250. */
static void start(struct fixture *f, uint16_t ctc_ticks, uint8_t nom_freq)
{
	struct pt_stream_config config = {
		.psb_period = 1u << 30,
		.tsc_interval = UINT64_MAX,
		.return_compression = true,
		.cbr = 10,
		.nom_freq = nom_freq,
		.mtc_freq = 1,
		.ctc_ticks = ctc_ticks,
	};

	pt_stream__init(&f->stream, &config, pt_bytes__emit, &f->out);
	pt_stream__time(&f->stream, 250);
	pt_stream__enable(&f->stream, A);
}

#define PSB "psb, tsc 250, tma 2+50, cbr 10, mode, psbend, pge sext48:401000"

static void test_mtc_packets_at_each_edge_of_the_ctc_that_counts(void **state)
{
	struct fixture *f = *state;

	start(f, CTC_TICKS, 0);
	pt_stream__time(&f->stream, 399);
	pt_stream__cond(&f->stream, true, B);
	pt_stream__time(&f->stream, 400);
	pt_stream__cond(&f->stream, false, B);
	pt_stream__time(&f->stream, 850);
	pt_stream__jump_indirect(&f->stream, A);
	assert_packets(&f->out, PSB ", tnt T, mtc 2, tnt N, mtc 3, mtc 4, tip 16:401000");
}

static void test_the_ctc_wraps(void **state)
{
	struct fixture *f = *state;

	start(f, CTC_TICKS, 0);
	f->stream.now = 256 * PERIOD - 1;
	f->stream.next_mtc = 256 * PERIOD;
	pt_stream__time(&f->stream, 257 * PERIOD);
	pt_stream__jump_indirect(&f->stream, A);
	assert_packets(&f->out, PSB ", mtc 0, mtc 1, tip 16:401000");
}

static void test_after_a_long_pause_comes_the_whole_time(void **state)
{
	struct fixture *f = *state;

	start(f, CTC_TICKS, 0);
	pt_stream__cond(&f->stream, true, B);
	pt_stream__disable(&f->stream);
	pt_stream__time(&f->stream, 1000 * PERIOD + 30);
	pt_stream__enable(&f->stream, B);
	assert_packets(&f->out, PSB ", tnt T, pgd -, tsc 200030, tma 2000+30, pge 16:401100");
}

static void test_cyc_packets_before_what_happened(void **state)
{
	struct fixture *f = *state;

	start(f, 0, 20);
	pt_stream__time(&f->stream, 260);
	pt_stream__jump_indirect(&f->stream, B);
	pt_stream__jump_indirect(&f->stream, A);
	pt_stream__time(&f->stream, 300);
	pt_stream__disable(&f->stream);
	pt_stream__time(&f->stream, 400);
	pt_stream__enable(&f->stream, B);
	assert_packets(&f->out, "psb, tsc 250, cbr 10, mode, psbend, pge sext48:401000, cyc 5, "
				"tip 16:401100, tip 16:401000, cyc 20, tsc 300, pgd -, cyc 50, "
				"tsc 400, pge 16:401100");
}

/* Held back or not, each packet has the time at which it happened. */
static void test_cycles_of_what_was_held_back(void **state)
{
	struct fixture *f = *state;

	start(f, CTC_TICKS, 20);
	pt_stream__time(&f->stream, 270);
	pt_stream__cond(&f->stream, true, B);
	pt_stream__time(&f->stream, 290);
	pt_stream__cond(&f->stream, true, B);
	pt_stream__time(&f->stream, 450);
	pt_stream__jump_indirect(&f->stream, A);
	assert_packets(&f->out, PSB ", cyc 20, tnt TT, cyc 55, mtc 2, cyc 25, tip 16:401000");
}

static void test_flush_writes_what_is_held_back(void **state)
{
	struct fixture *f = *state;

	start(f, CTC_TICKS, 0);
	pt_stream__flush(&f->stream);
	pt_stream__cond(&f->stream, true, B);
	pt_stream__flush(&f->stream);
	assert_packets(&f->out, PSB ", tnt T");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_mtc_packets_at_each_edge_of_the_ctc_that_counts),
		TEST(test_the_ctc_wraps),
		TEST(test_after_a_long_pause_comes_the_whole_time),
		TEST(test_cyc_packets_before_what_happened),
		TEST(test_cycles_of_what_was_held_back),
		TEST(test_flush_writes_what_is_held_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
