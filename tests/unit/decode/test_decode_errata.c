// SPDX-License-Identifier: MIT
/*
 * Streams of CPUs that get them wrong, and of threads that change what code they run. What libipt
 * makes of the same, with the same CPU's errata, is the same.
 */
#include "packets_fixture.h"

#include "oracle/oracle.h"

/* Models that libipt knows: Broadwell, Skylake, Kaby Lake. */
enum model { BROADWELL = 0x3d, SKYLAKE = 0x4e, KABY_LAKE = 0x8e };

static void set_cpu(struct traced *t, enum model model)
{
	t->rec.pt.cpu_family = 6;
	t->rec.pt.cpu_model = model;
	t->rec.pt.cpu_stepping = model == BROADWELL ? 4 : model == SKYLAKE ? 3 : 9;
}

static const struct decoding oracle = {.run = oracle__run};

static void check_with_oracle(struct traced *t)
{
	check(t);
	traced__decode_as(t, &oracle, t->out.bytes.v, t->out.bytes.n);
	assert_decoded(t);
}

static void put_mode(struct traced *t, uint8_t bits)
{
	const uint8_t mode[] = {0x99, bits};

	put(t, mode, sizeof(mode));
}

#define MODE_ABORT 0x22
#define MODE_32	   0x02
#define MODE_64	   0x01

/*
 * BDM64: the RET in front of the abort seems to go to `wrong`, from where the thread cannot have
 * come to it.
 */
static void put_abort(struct traced *t, uint64_t wrong, uint64_t right)
{
	put_psb(t, 100, BASE + F);
	put_tip(t, wrong);
	put_mode(t, MODE_ABORT);
	put_ip(t, PT_FUP, BASE + SMALL);
	put_tip(t, G);
	put_tnt(t, "T");
	expect(t, BRANCH_BEGIN, 0, 0, BASE + F, 0);
	expect(t, BRANCH_RETURN, 3, BASE + F + 2, BASE + right, 1);
}

static void expect_aborted(struct traced *t)
{
	expect(t, BRANCH_JUMP, 0, BASE + SMALL, BASE + G, 0);
	expect(t, BRANCH_COND, 1, BASE + G, BASE + G + 3, 2);
	expect(t, BRANCH_END, 0, BASE + G + 3, 0, 0);
}

static void test_a_branch_before_an_abort_went_elsewhere(void **state)
{
	struct traced *t = *state;

	set_cpu(t, BROADWELL);
	put_abort(t, HANDLER, SMALL);
	expect_aborted(t);
	check_with_oracle(t);
}

static void test_other_cpus_tell_it_right(void **state)
{
	struct traced *t = *state;

	set_cpu(t, KABY_LAKE);
	put_abort(t, HANDLER, HANDLER);
	expect_gap(t, GAP_MISMATCH, BASE + HANDLER);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + G, 0);
	expect(t, BRANCH_COND, 1, BASE + G, BASE + G + 3, 2);
	expect(t, BRANCH_END, 0, BASE + G + 3, 0, 0);
	check(t);
}

static void test_an_abort_is_a_jump(void **state)
{
	struct traced *t = *state;

	set_cpu(t, BROADWELL);
	put_abort(t, SMALL, SMALL);
	expect_aborted(t);
	check_with_oracle(t);
}

/* SKD007: an OVF takes the place of the rest of a CYC. */
static void put_cut_cyc(struct traced *t)
{
	static const uint8_t first = 0x07, pads[32];

	put_psb(t, 100, BASE + SITE_1);
	put_tip(t, SMALL);
	put(t, &first, 1);
	put_ovf(t);
	put_ip(t, PT_FUP, BASE + SITE_2);
	put_tip(t, SMALL);
	/* Not so near to the end that every byte is looked at twice. */
	put(t, pads, sizeof(pads));
}

static void test_an_overflow_within_a_cyc(void **state)
{
	struct traced *t = *state;

	set_cpu(t, SKYLAKE);
	put_cut_cyc(t);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect_gap(t, GAP_OVERFLOW, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_2, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
}

/* SKD010 beside it: no FUP says where it goes on. */
static void test_an_overflow_within_a_cyc_before_a_tip(void **state)
{
	static const uint8_t first = 0x07, pads[32];
	struct traced *t = *state;

	set_cpu(t, SKYLAKE);
	put_psb(t, 100, BASE + SITE_1);
	/* The same TIP at the same code, once where nothing was cut. */
	put_tip(t, SMALL);
	put_tip(t, SITE_2);
	put_tip(t, SMALL);
	put(t, &first, 1);
	put_ovf(t);
	put_tip(t, SITE_2);
	put_tip(t, SMALL);
	put(t, pads, sizeof(pads));
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect(t, BRANCH_RETURN, 2, BASE + SMALL_2, BASE + SITE_2, 1);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect_gap(t, GAP_OVERFLOW, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_2, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
}

static void test_other_cpus_have_whole_cycs(void **state)
{
	struct traced *t = *state;

	set_cpu(t, BROADWELL);
	put_cut_cyc(t);
	traced__decode(t);
	assert_int_equal(t->totals.gaps[GAP_OVERFLOW], 0);
}

/* SKD022: a FUP in front of the end of tracing, at the VM entry that is the end. */
static void test_a_vm_entry_with_a_fup(void **state)
{
	static const uint8_t vmresume[] = {0x0f, 0x01, 0xc3};
	struct traced *t = *state;

	set_cpu(t, SKYLAKE);
	memcpy(t->rec.images.v[0].data + SMALL, vmresume, sizeof(vmresume));
	put_psb(t, 100, BASE + SITE_1);
	put_tip(t, SMALL);
	put_ip(t, PT_FUP, BASE + SMALL);
	put_ip(t, PT_TIP_PGD, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect(t, BRANCH_END_SYSCALL, 1, BASE + SMALL, 0, 3);
	check_with_oracle(t);
}

/* SKL014: a direct branch out of a filter's range, without the IP that it went to. */
static void test_an_end_without_an_ip(void **state)
{
	struct traced *t = *state;

	set_cpu(t, SKYLAKE);
	t->rec.images.v[0].data[JUMP_TO] = 0xc3; /* ret */
	put_psb(t, 100, BASE + JUMP);
	put_ip(t, PT_TIP_PGD, 0);
	put_ip(t, PT_TIP_PGE, BASE + SITE_1);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + JUMP, 0);
	expect(t, BRANCH_END, 1, BASE + JUMP, 0, 2);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	oracle__filter = (struct oracle_filter){BASE, BASE + JUMP_TO};
	check_with_oracle(t);
	oracle__filter = (struct oracle_filter){0, 0};
}

/* Not SKL014: a system call has no IP on any CPU, also where a direct branch leads to it. */
static void test_a_system_call_after_a_direct_branch(void **state)
{
	static const uint8_t syscall[] = {0x0f, 0x05};
	struct traced *t = *state;

	set_cpu(t, SKYLAKE);
	memcpy(t->rec.images.v[0].data + JUMP_TO, syscall, sizeof(syscall));
	put_psb(t, 100, BASE + JUMP);
	put_ip(t, PT_TIP_PGD, 0);
	put_ip(t, PT_TIP_PGE, BASE + SITE_1);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + JUMP, 0);
	expect(t, BRANCH_JUMP, 1, BASE + JUMP, BASE + JUMP_TO, 2);
	expect(t, BRANCH_END_SYSCALL, 1, BASE + JUMP_TO, 0, 2);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check_with_oracle(t);
}

/* A jump, and a call where it leads: which of them it was is not known. */
static void test_an_end_without_an_ip_that_may_be_several(void **state)
{
	struct traced *t = *state;

	set_cpu(t, SKYLAKE);
	put_psb(t, 100, BASE + JUMP);
	put_ip(t, PT_TIP_PGD, 0);
	put_ip(t, PT_TIP_PGE, KERNEL);
	traced__decode(t);
	assert_int_equal(t->totals.gaps[GAP_MISMATCH], 1);
}

/* BDM70: the PSB+ in front of a TIP.PGE says where tracing will begin. */
static void test_a_psb_that_says_too_much(void **state)
{
	struct traced *t = *state;

	set_cpu(t, BROADWELL);
	put_psb(t, 100, BASE + SITE_1);
	put_ip(t, PT_TIP_PGE, BASE + SITE_1);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check_with_oracle(t);
}

/* APL12, and APL11 */
static void test_what_follows_an_overflow_while_tracing_is_off(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_tip(t, SMALL);
	put_ovf(t);
	put_ip(t, PT_FUP, BASE + SITE_2);
	put_psb(t, 200, 0);
	put_ovf(t);
	put_ip(t, PT_TIP_PGD, 0);
	put_ip(t, PT_TIP_PGE, BASE + SITE_2);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect_gap(t, GAP_OVERFLOW, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_2, 0);
	expect(t, BRANCH_END, 0, BASE + SITE_2, 0, 0);
	check(t);
	assert_int_equal(t->totals.gaps[GAP_OVERFLOW], 1);
}

/* From a syscall to the next, and from a PSB to the next: one gap. */
static void test_32_bit_code_is_one_gap(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + 0x20);
	put_mode(t, MODE_32);
	put_tip(t, G);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + 0x20, 0);
	expect(t, BRANCH_ENTER, 1, BASE + 0x20, BASE + G, 2);
	expect_gap(t, GAP_32_BIT, BASE + G);
	put_tnt(t, "TTT");
	put_ip(t, PT_TIP_PGD, 0);
	put_ip(t, PT_TIP_PGE, BASE + F);
	put_tip(t, F);
	put_psb(t, 200, 0);
	t->out.bytes.n -= 2; /* PSBEND */
	put_mode(t, MODE_32);
	put_ip(t, PT_FUP, BASE + F);
	put(t, (const uint8_t[]){0x02, 0x23}, 2);
	put_tnt(t, "TN");
	put_ip(t, PT_TIP_PGD, 0);
	put_tsc(t, 250);
	put_mode(t, MODE_64);
	put_ip(t, PT_TIP_PGE, BASE + SITE_1);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_END, 0, BASE + SITE_1, 0, 0);
	check(t);
	assert_int_equal(t->totals.gaps[GAP_32_BIT], 1);
	assert_int_equal(t->totals.gap_ns[GAP_32_BIT], 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_branch_before_an_abort_went_elsewhere),
		TEST(test_other_cpus_tell_it_right),
		TEST(test_an_abort_is_a_jump),
		TEST(test_an_overflow_within_a_cyc),
		TEST(test_an_overflow_within_a_cyc_before_a_tip),
		TEST(test_other_cpus_have_whole_cycs),
		TEST(test_a_vm_entry_with_a_fup),
		TEST(test_an_end_without_an_ip),
		TEST(test_a_system_call_after_a_direct_branch),
		TEST(test_an_end_without_an_ip_that_may_be_several),
		TEST(test_a_psb_that_says_too_much),
		TEST(test_what_follows_an_overflow_while_tracing_is_off),
		TEST(test_32_bit_code_is_one_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
