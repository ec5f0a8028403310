// SPDX-License-Identifier: MIT
/* What a thread does, as the packets that libipt's packet decoder reads back. */
#include "pt_stream_fixture.h"

#define A 0x401000
#define B 0x401100
#define C 0x401200

#define HEAD   "psb, tsc 1, cbr 10, mode, psbend, pge sext48:401000"
#define NEVER  (1ull << 40)
#define NO_PSB (1u << 30)

/* As one struct pt_bytes__emit(), and every piece is one whole packet. */
static void emit_whole(void *ctx, const uint8_t *bytes, unsigned int len)
{
	struct pt_reader r;

	pt_reader__open(&r, (uint8_t *)bytes, len);
	r.last_ip_known = true;
	assert_true(pt_reader__next(&r));
	assert_int_equal(r.packet.size, len);
	pt_reader__close(&r);
	pt_bytes__emit(ctx, bytes, len);
}

/* Enabled at A, at time 1. */
static void start(struct fixture *f, uint32_t psb_period, uint64_t tsc_interval, bool compress)
{
	struct pt_stream_config config = {.psb_period = psb_period,
					  .tsc_interval = tsc_interval,
					  .return_compression = compress,
					  .cbr = 10};

	VEC_FINI(&f->out.bytes);
	pt_stream__init(&f->stream, &config, emit_whole, &f->out);
	pt_stream__time(&f->stream, 1);
	pt_stream__enable(&f->stream, A);
}

static void test_the_first_enable_writes_a_psb_and_a_full_ip(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, NEVER, true);
	assert_true(f->stream.enabled);
	assert_packets(&f->out, HEAD);
}

static void test_conditions_are_held_back_until_there_are_six(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, NEVER, true);
	for (int i = 0; i < 5; i++)
		pt_stream__cond(&f->stream, i & 1, B);
	assert_packets(&f->out, HEAD);
	pt_stream__cond(&f->stream, true, B);
	assert_packets(&f->out, HEAD ", tnt NTNTNT");
	pt_stream__cond(&f->stream, true, B);
	pt_stream__disable(&f->stream);
	assert_packets(&f->out, HEAD ", tnt NTNTNT, tnt T, pgd -");
}

static void test_conditions_come_before_what_follows_them(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, NEVER, true);
	pt_stream__cond(&f->stream, true, B);
	pt_stream__jump_indirect(&f->stream, B);
	assert_packets(&f->out, HEAD ", tnt T, tip 16:401100");
	pt_stream__cond(&f->stream, false, B);
	pt_stream__disable_async(&f->stream, C);
	assert_packets(&f->out, HEAD ", tnt T, tip 16:401100, tnt N, fup 16:401200, pgd -");
}

static void test_time_comes_behind_what_was_held_back_and_before_what_it_is_for(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, 100, true);
	pt_stream__time(&f->stream, 100);
	pt_stream__cond(&f->stream, true, B);
	pt_stream__time(&f->stream, 101);
	pt_stream__cond(&f->stream, false, B);
	assert_packets(&f->out, HEAD ", tnt T, tsc 101");
	pt_stream__time(&f->stream, 201);
	pt_stream__jump_indirect(&f->stream, B);
	pt_stream__time(&f->stream, 300);
	pt_stream__jump_indirect(&f->stream, C);
	assert_packets(&f->out, HEAD ", tnt T, tsc 101, tnt N, tsc 201, tip 16:401100, "
				     "tip 16:401200");
}

static void test_time_never_runs_backwards(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, 0, true);
	pt_stream__time(&f->stream, 50);
	pt_stream__time(&f->stream, 20);
	pt_stream__jump_indirect(&f->stream, B);
	assert_packets(&f->out, "psb, tsc 1, cbr 10, mode, psbend, pge sext48:401000, tsc 50, "
				"tip 16:401100");
}

static void test_ips_are_compressed_against_the_last_one_of_any_packet(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, NEVER, true);
	pt_stream__jump_indirect(&f->stream, 0x7f0000001000);
	pt_stream__jump_indirect(&f->stream, 0x7f0012340000);
	pt_stream__disable_async(&f->stream, 0x7f0012345678);
	/* The suppressed IP of the PGD does not count. */
	pt_stream__enable(&f->stream, 0x7f0012345679);
	pt_stream__jump_indirect(&f->stream, 0xffffffffff600000);
	pt_stream__jump_indirect(&f->stream, 0x900000000000);
	assert_packets(&f->out, HEAD ", tip sext48:7f0000001000, tip 32:7f0012340000, "
				     "fup 16:7f0012345678, pgd -, pge 16:7f0012345679, "
				     "tip sext48:ffffffffff600000, tip full:900000000000");
}

static void test_a_psb_stands_behind_a_branch_and_says_where_that_went(void **state)
{
	struct fixture *f = *state;

	start(f, 54, NEVER, true);
	pt_stream__time(&f->stream, 5);
	for (int i = 0; i < 6; i++)
		pt_stream__jump_indirect(&f->stream, B);
	pt_stream__jump_indirect(&f->stream, C);
	assert_packets(&f->out,
		       HEAD ", tip 16:401100, tip 16:401100, tip 16:401100, tip 16:401100, "
			    "tip 16:401100, psb, tsc 5, cbr 10, mode, fup sext48:401100, psbend, "
			    "tip 16:401100, tip 16:401200");
}

/* A dozen of PSBs and more, one after each 256 bytes. */
static void assert_psb_period(const struct pt_bytes *stream)
{
	struct pt_reader r;
	uint64_t last = 0;
	size_t n = 0;

	pt_reader__open(&r, stream->bytes.v, stream->bytes.n);
	while (pt_reader__next(&r)) {
		if (r.packet.type != ppt_psb)
			continue;
		if (n++)
			assert_in_range(r.offset - last, 256, 256 + 10);
		last = r.offset;
	}
	pt_reader__close(&r);
	assert_true(n >= 12);
}

static void test_psbs_come_in_a_stream_of_conditions_alone(void **state)
{
	struct fixture *f = *state;

	start(f, 256, NEVER, true);
	for (int i = 0; i < 6 * 4096; i++)
		pt_stream__cond(&f->stream, i & 1, B);
	assert_psb_period(&f->out);
}

static void test_psbs_come_in_a_stream_of_compressed_returns_alone(void **state)
{
	struct fixture *f = *state;

	start(f, 256, NEVER, true);
	for (int i = 0; i < 6 * 4096; i++) {
		pt_stream__call(&f->stream, A + 5, B);
		pt_stream__ret(&f->stream, A + 5);
	}
	assert_psb_period(&f->out);
}

static void test_held_back_conditions_do_not_cross_a_psb(void **state)
{
	struct fixture *f = *state;

	start(f, 40, 1, true);
	/* Each of these is behind a TSC: the PSB is due with a bit held back. */
	pt_stream__time(&f->stream, 2);
	pt_stream__cond(&f->stream, true, B);
	assert_packets(&f->out,
		       "psb, tsc 1, cbr 10, mode, psbend, pge sext48:401000, tsc 2, tnt T, "
		       "psb, tsc 2, cbr 10, mode, fup sext48:401100, psbend");
}

static void test_a_psb_that_is_due_while_disabled_names_no_ip(void **state)
{
	struct fixture *f = *state;

	start(f, 37, NEVER, true);
	pt_stream__disable(&f->stream);
	assert_false(f->stream.enabled);
	pt_stream__time(&f->stream, 7);
	pt_stream__enable(&f->stream, B);
	assert_packets(&f->out, HEAD ", pgd -, psb, tsc 7, cbr 10, mode, psbend, "
				     "pge sext48:401100");
}

static void test_a_return_to_its_call_is_a_bit(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, NEVER, true);
	pt_stream__call(&f->stream, A + 5, B);
	pt_stream__call_indirect(&f->stream, B + 2, C);
	pt_stream__ret(&f->stream, B + 2);
	pt_stream__ret(&f->stream, A + 5);
	pt_stream__disable(&f->stream);
	assert_packets(&f->out, HEAD ", tip 16:401200, tnt TT, pgd -");
}

static void test_without_compression_every_return_has_a_tip(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, NEVER, false);
	pt_stream__call(&f->stream, A + 5, B);
	pt_stream__ret(&f->stream, A + 5);
	assert_packets(&f->out, HEAD ", tip 16:401005");
}

static void test_a_return_elsewhere_has_a_tip_and_ends_compression(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, NEVER, true);
	pt_stream__call(&f->stream, A + 5, B);
	pt_stream__call(&f->stream, B + 5, C);
	pt_stream__ret(&f->stream, C + 8);
	/* Decoders disagree on what is left on the stack. */
	pt_stream__ret(&f->stream, A + 5);
	assert_packets(&f->out, HEAD ", tip 16:401208, tip 16:401005");
	pt_stream__call(&f->stream, A + 10, B);
	pt_stream__ret(&f->stream, A + 10);
	pt_stream__disable(&f->stream);
	assert_packets(&f->out, HEAD ", tip 16:401208, tip 16:401005, tnt T, pgd -");
}

static void test_a_call_to_the_next_instruction_is_not_remembered(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, NEVER, true);
	pt_stream__call(&f->stream, A + 5, B);
	pt_stream__call(&f->stream, B + 5, B + 5);
	pt_stream__ret(&f->stream, A + 5);
	pt_stream__disable(&f->stream);
	assert_packets(&f->out, HEAD ", tnt T, pgd -");
}

static size_t count_tips(const struct pt_bytes *stream, size_t *tnt_bits)
{
	struct pt_reader r;
	size_t tips = 0;

	*tnt_bits = 0;
	pt_reader__open(&r, stream->bytes.v, stream->bytes.n);
	while (pt_reader__next(&r)) {
		tips += r.packet.type == ppt_tip;
		if (r.packet.type == ppt_tnt_8)
			*tnt_bits += r.packet.payload.tnt.bit_size;
	}
	pt_reader__close(&r);
	return tips;
}

static void test_the_return_stack_holds_64(void **state)
{
	struct fixture *f = *state;
	size_t bits;

	start(f, NO_PSB, NEVER, true);
	for (int i = 1; i <= 70; i++)
		pt_stream__call(&f->stream, A + (uint64_t)i, B);
	for (int i = 70; i >= 1; i--)
		pt_stream__ret(&f->stream, A + (uint64_t)i);
	pt_stream__disable(&f->stream);
	assert_int_equal(count_tips(&f->out, &bits), 6);
	assert_int_equal(bits, 64);
}

static void test_returns_are_not_compressed_across_a_psb(void **state)
{
	struct fixture *f = *state;

	start(f, 45, NEVER, true);
	pt_stream__call(&f->stream, A + 5, B);
	pt_stream__jump_indirect(&f->stream, C);
	pt_stream__jump_indirect(&f->stream, C);
	pt_stream__ret(&f->stream, A + 5);
	assert_packets(
		&f->out,
		HEAD ", tip 16:401200, tip 16:401200, psb, tsc 1, cbr 10, mode, fup sext48:401200, "
		     "psbend, tip 16:401005");
}

static void test_returns_are_not_compressed_across_a_disabled_period(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, NEVER, true);
	pt_stream__call(&f->stream, A + 5, B);
	pt_stream__disable(&f->stream);
	pt_stream__enable(&f->stream, B + 2);
	pt_stream__ret(&f->stream, A + 5);
	assert_packets(&f->out, HEAD ", pgd -, pge 16:401102, tip 16:401005");
}

static void test_an_overflow_loses_what_was_held_back(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, NEVER, true);
	pt_stream__call(&f->stream, A + 5, B);
	pt_stream__cond(&f->stream, true, B);
	pt_stream__time(&f->stream, 9);
	pt_stream__overflow(&f->stream, B);
	pt_stream__ret(&f->stream, A + 5);
	pt_stream__disable(&f->stream);
	assert_packets(&f->out, HEAD ", ovf, tsc 9, fup sext48:401100, tip 16:401005, pgd -");
}

static void test_disabled_periods(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, 5, true);
	pt_stream__time(&f->stream, 10);
	pt_stream__disable(&f->stream);
	pt_stream__time(&f->stream, 20);
	pt_stream__enable(&f->stream, A + 2);
	pt_stream__time(&f->stream, 30);
	pt_stream__disable_async(&f->stream, B);
	pt_stream__time(&f->stream, 40);
	pt_stream__enable(&f->stream, B);
	assert_packets(&f->out, HEAD ", tsc 10, pgd -, tsc 20, pge 16:401002, tsc 30, "
				     "fup 16:401100, pgd -, tsc 40, pge 16:401100");
}

/* The event's packets precede the FUP of its branch, its address first; conditions come before all.
 */
static void test_what_interrupts_is_told_once(void **state)
{
	static const uint8_t expected[] = {0x06, /* TNT T */
					   0x02, 0x53, 0,    0x00, 0x7f, 0,    0,  0,
					   0,	 0,    0,    0x02, 0x13, 0x01, 14, 0x3d,
					   0x00, 0x11, 0x01, 0x31, 0x00, 0x11, /* FUP, PGD, PGE */
					   0x3d, 0x00, 0x11, 0x01};
	struct pt_stream_config config = {
		.psb_period = NO_PSB, .tsc_interval = NEVER, .ctc_ticks = 100, .cbr = 10};
	struct fixture *f = *state;
	size_t head;

	pt_stream__init(&f->stream, &config, pt_bytes__emit, &f->out);
	pt_stream__time(&f->stream, 1);
	pt_stream__enable(&f->stream, A);
	head = f->out.bytes.n;
	f->stream.event = (struct pt_stream_event){
		.type = PT_CFE_INTR, .vector = 14, .has_address = true, .address = 0x7f00};
	pt_stream__cond(&f->stream, true, B);
	pt_stream__disable_async(&f->stream, B);
	pt_stream__enable(&f->stream, B);
	pt_stream__disable_async(&f->stream, B);
	assert_int_equal(f->out.bytes.n, head + sizeof(expected));
	assert_memory_equal(f->out.bytes.v + head, expected, sizeof(expected));
}

/* A range is left with the IP that lies outside of it. */
static void test_ranges(void **state)
{
	struct fixture *f = *state;

	start(f, NO_PSB, 5, true);
	pt_stream__cond(&f->stream, true, B);
	pt_stream__leave_range(&f->stream, C);
	assert_false(f->stream.enabled);
	pt_stream__enable(&f->stream, A);
	pt_stream__disable(&f->stream);
	assert_packets(&f->out, HEAD ", tnt T, pgd 16:401200, pge 16:401000, pgd -");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_first_enable_writes_a_psb_and_a_full_ip),
		TEST(test_conditions_are_held_back_until_there_are_six),
		TEST(test_conditions_come_before_what_follows_them),
		TEST(test_time_comes_behind_what_was_held_back_and_before_what_it_is_for),
		TEST(test_time_never_runs_backwards),
		TEST(test_ips_are_compressed_against_the_last_one_of_any_packet),
		TEST(test_a_psb_stands_behind_a_branch_and_says_where_that_went),
		TEST(test_psbs_come_in_a_stream_of_conditions_alone),
		TEST(test_psbs_come_in_a_stream_of_compressed_returns_alone),
		TEST(test_held_back_conditions_do_not_cross_a_psb),
		TEST(test_a_psb_that_is_due_while_disabled_names_no_ip),
		TEST(test_a_return_to_its_call_is_a_bit),
		TEST(test_without_compression_every_return_has_a_tip),
		TEST(test_a_return_elsewhere_has_a_tip_and_ends_compression),
		TEST(test_a_call_to_the_next_instruction_is_not_remembered),
		TEST(test_the_return_stack_holds_64),
		TEST(test_returns_are_not_compressed_across_a_psb),
		TEST(test_returns_are_not_compressed_across_a_disabled_period),
		TEST(test_an_overflow_loses_what_was_held_back),
		TEST(test_disabled_periods),
		TEST(test_what_interrupts_is_told_once),
		TEST(test_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
