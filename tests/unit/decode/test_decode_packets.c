// SPDX-License-Identifier: MIT
/* Streams made packet by packet: what no encoder of ours writes, and what happens around gaps. */
#include "packets_fixture.h"

/* SDM "Deferred TIPs": TNT bits of later branches come before the TIP. */
static void test_deferred_tips(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + 8);
	put_tnt(t, "TTN");
	put_tip(t, G);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + 8, 0);
	expect(t, BRANCH_CALL, 1, BASE + 8, BASE + G, 2);
	expect(t, BRANCH_COND, 1, BASE + G, BASE + G + 3, 2);
	expect(t, BRANCH_RETURN, 1, BASE + G + 3, BASE + 0xa, 1);
	/* jne not taken, four nops; jmp; syscall */
	expect(t, BRANCH_JUMP, 6, BASE + 0x10, BASE + 0x20, 2);
	expect(t, BRANCH_ENTER, 1, BASE + 0x20, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
}

/* SDM "Indirect Transfer Compression for Returns": RET takes its call away, compressed or not. */
static void test_a_full_return_takes_its_call_away(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_tip(t, SITE_2);
	put_tip(t, SMALL);
	put_tip(t, SMALL);
	put_tnt(t, "T");
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SITE_2, 2);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect(t, BRANCH_RETURN, 2, BASE + SMALL_2, BASE + SMALL, 1);
	expect(t, BRANCH_RETURN, 2, BASE + SMALL_2, BASE + RET_1, 1);
	expect(t, BRANCH_END, 0, BASE + RET_1, 0, 0);
	check(t);
}

static void test_a_compressed_return_without_a_call_is_a_gap(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SMALL);
	put_tnt(t, "T");
	put_tsc(t, 150);
	put_tip(t, SITE_1);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SMALL, 0);
	expect_gap(t, GAP_MISMATCH, BASE + SMALL_2);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
	assert_int_equal(t->totals.gap_ns[GAP_MISMATCH], 50);
}

static void test_calls_are_forgotten_behind_the_64th(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	for (int i = 0; i < 65; i++) {
		put_tip(t, i < 64 ? SITE_1 : RET_1);
		expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + (i < 64 ? SITE_1 : RET_1), 2);
	}
	for (int i = 0; i < 65; i++)
		put_tnt(t, "T");
	for (int i = 0; i < 64; i++)
		expect(t, BRANCH_RETURN, 1, BASE + RET_1, BASE + RET_1, 1);
	expect_gap(t, GAP_MISMATCH, BASE + RET_1);
	check(t);
}

/* A PSB forgets them all. */
static void test_no_return_behind_a_psb_is_compressed(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_tip(t, SMALL);
	put_psb(t, 200, BASE + SMALL);
	put_tnt(t, "T");
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect_gap(t, GAP_MISMATCH, BASE + SMALL_2);
	check(t);
}

static void test_a_traced_syscall(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + 0x20);
	put_ip(t, PT_TIP, KERNEL);
	put_tip(t, 0x22);
	put_tip(t, 0x2a);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + 0x20, 0);
	expect(t, BRANCH_ENTER, 1, BASE + 0x20, KERNEL, 2);
	expect(t, BRANCH_LEAVE, 2, KERNEL + 1, BASE + 0x22, 2);
	expect(t, BRANCH_CALL, 1, BASE + 0x22, BASE + 0x27, 5);
	expect(t, BRANCH_JUMP, 2, BASE + 0x28, BASE + 0x2a, 2);
	expect(t, BRANCH_END, 0, BASE + 0x2a, 0, 0);
	check(t);
}

static void test_a_traced_interrupt(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + F);
	put_ip(t, PT_FUP, BASE + F + 1);
	put_ip(t, PT_TIP, KERNEL);
	put_tip(t, F + 1);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + F, 0);
	expect(t, BRANCH_ENTER, 1, BASE + F + 1, KERNEL, 0);
	expect(t, BRANCH_LEAVE, 2, KERNEL + 1, BASE + F + 1, 2);
	expect(t, BRANCH_RETURN, 2, BASE + F + 2, BASE + SMALL, 1);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
}

/* Packets that do not fit the code are packets still: what they say of IPs is right. */
static void test_goes_on_at_the_next_ip(void **state)
{
	struct traced *t = *state;
	uint8_t p[PT_PACKET_MAX];

	put_psb(t, 100, BASE + G);
	put_tip(t, 8); /* at a je */
	put_tnt(t, "TNT");
	expect(t, BRANCH_BEGIN, 0, 0, BASE + G, 0);
	expect_gap(t, GAP_MISMATCH, BASE + G);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + 8, 0);
	expect_gap(t, GAP_MISMATCH, BASE + 8);
	t->taken.list.n--;
	/* The bits wait for a TIP; another TNT cannot be. */
	put_tnt(t, "T");
	expect_gap(t, GAP_MISMATCH, BASE + 8);
	put(t, p, pt_packet__ip(p, PT_TIP, PT_IP_UPDATE_16, BASE + SITE_1));
	put_tip(t, SITE_2);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SITE_2, 2);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
	assert_int_equal(t->totals.gaps[GAP_MISMATCH], 2);
}

/* Behind a gap, code that nobody has is the same gap still. */
static void test_stays_in_the_gap_where_code_is_unmapped(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_tip(t, 0x100000);
	for (int i = 0; i < 5; i++)
		put_tip(t, 0x100000 + (unsigned int)i);
	put_tsc(t, 300);
	put_tip(t, SITE_2);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + 0x100000, 2);
	expect_gap(t, GAP_UNMAPPED, BASE + 0x100000);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_2, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
	assert_int_equal(t->totals.gaps[GAP_UNMAPPED], 1);
	assert_int_equal(t->totals.gap_ns[GAP_UNMAPPED], 200);
}

/* Erratum BDM70: a FUP in the PSB+ right before tracing is enabled. */
static void test_a_psb_that_tells_an_ip_too_early(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + F);
	put_ip(t, PT_TIP_PGE, BASE + SITE_1);
	put_tip(t, SMALL);
	put_ip(t, PT_FUP, BASE + SMALL);
	put_ip(t, PT_TIP_PGD, 0);
	put_psb(t, 200, BASE + F);
	put_ip(t, PT_TIP_PGE, BASE + SITE_2);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect(t, BRANCH_END_ASYNC, 0, BASE + SMALL, 0, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_2, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
}

/* Erratum APL12: the same, behind an OVF. And without it: SKD010. */
static void test_an_overflow_and_what_may_follow(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, 0);
	put_ovf(t);
	put_ip(t, PT_FUP, BASE + F);
	put_ip(t, PT_TIP_PGE, BASE + SITE_1);
	put_tip(t, SITE_2);
	put_ovf(t);
	put_tip(t, SITE_1);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SITE_2, 2);
	expect_gap(t, GAP_OVERFLOW, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
	assert_int_equal(t->totals.gaps[GAP_OVERFLOW], 2);
}

/* Out of an address range, by direct branches and others. */
static void test_branches_out_of_what_is_traced(void **state)
{
	static const struct {
		uint64_t at, to, from;
		uint32_t n;
		uint8_t len;
	} cases[] = {
		{0, F, 0, 1, 5},	       /* call */
		{0x10, 0x20, 0x10, 1, 2},      /* jmp */
		{G, G + 3, G, 1, 2},	       /* je, taken */
		{G, G + 2, G, 1, 2},	       /* not taken */
		{SMALL, 0x900, SMALL_2, 2, 1}, /* ret */
		{SITE_1, 0x900, SITE_1, 1, 2}, /* call *%rax */
	};
	struct traced *t = *state;

	put_psb(t, 100, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put_ip(t, PT_TIP_PGE, BASE + cases[i].at);
		put_ip(t, PT_TIP_PGD, BASE + cases[i].to);
		expect(t, BRANCH_BEGIN, 0, 0, BASE + cases[i].at, 0);
		expect(t, BRANCH_END, cases[i].n, BASE + cases[i].from, 0, cases[i].len);
	}
	check(t);
}

/* Transactions and PTWRITE have FUPs that are no branches. */
static void test_fups_that_only_tell_where(void **state)
{
	static const uint8_t tsx_begin[] = {0x99, 0x21}, ptwrite[] = {0x02, 0x92, 1, 2, 3, 4};
	struct traced *t = *state;

	put_psb(t, 100, BASE + F);
	put(t, tsx_begin, sizeof(tsx_begin));
	put_ip(t, PT_FUP, BASE + F + 1);
	put(t, ptwrite, sizeof(ptwrite));
	put_ip(t, PT_FUP, BASE + F + 1);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + F, 0);
	expect(t, BRANCH_RETURN, 3, BASE + F + 2, BASE + SMALL, 1);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
}

/* The packet that the first belongs to is missing. */
static void test_two_fups_in_a_row(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + F);
	put_ip(t, PT_FUP, BASE + F + 1);
	put_ip(t, PT_FUP, BASE + F + 2);
	put_ip(t, PT_TIP_PGD, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + F, 0);
	expect_gap(t, GAP_MISMATCH, BASE + F + 1);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + F + 2, 0);
	expect(t, BRANCH_END_ASYNC, 0, BASE + F + 2, 0, 0);
	check(t);
}

/* What follows a PSB, where that has been overwritten. */
static void test_a_psbend_without_its_psb(void **state)
{
	struct traced *t = *state;
	size_t psb;

	put_psb(t, 100, BASE + SITE_1);
	put_tip(t, SMALL);
	psb = t->out.bytes.n;
	put_psb(t, 200, BASE + SMALL);
	memset(&t->out.bytes.v[psb], 0, 16);
	put_ip(t, PT_TIP_PGD, 0);
	put_ip(t, PT_TIP_PGE, BASE + SITE_2);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect_gap(t, GAP_BAD_PACKET, BASE + SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_2, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
}

/* A direct branch comes when the packet before it did. */
static void test_times_are_those_of_the_packets(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_tsc(t, 110);
	put_tip(t, 0);
	put_tsc(t, 120);
	put_tnt(t, "T");
	put_tsc(t, 130);
	put_ip(t, PT_FUP, BASE + 5);
	put_ip(t, PT_TIP_PGD, 0);
	traced__decode(t);
	assert_int_equal(t->seen.list.n, 5);
	assert_int_equal(t->seen.list.v[0].time_ns, 100);
	assert_int_equal(t->seen.list.v[1].time_ns, 110);
	assert_int_equal(t->seen.list.v[2].kind, BRANCH_CALL);
	assert_int_equal(t->seen.list.v[2].time_ns, 110);
	assert_int_equal(t->seen.list.v[3].kind, BRANCH_RETURN);
	assert_int_equal(t->seen.list.v[3].time_ns, 120);
	assert_int_equal(t->seen.list.v[4].time_ns, 130);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_deferred_tips),
		TEST(test_a_full_return_takes_its_call_away),
		TEST(test_a_compressed_return_without_a_call_is_a_gap),
		TEST(test_calls_are_forgotten_behind_the_64th),
		TEST(test_no_return_behind_a_psb_is_compressed),
		TEST(test_a_traced_syscall),
		TEST(test_a_traced_interrupt),
		TEST(test_goes_on_at_the_next_ip),
		TEST(test_stays_in_the_gap_where_code_is_unmapped),
		TEST(test_a_psb_that_tells_an_ip_too_early),
		TEST(test_an_overflow_and_what_may_follow),
		TEST(test_branches_out_of_what_is_traced),
		TEST(test_fups_that_only_tell_where),
		TEST(test_two_fups_in_a_row),
		TEST(test_a_psbend_without_its_psb),
		TEST(test_times_are_those_of_the_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
