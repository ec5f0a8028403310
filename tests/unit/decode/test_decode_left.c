// SPDX-License-Identifier: MIT
/*
 * Tracing that ends without a packet that says where: at an int3 that the code does not show, which
 * a debugger or a probe had put there. And what is known behind gaps.
 */
#include "packets_fixture.h"

#define JUMP_TO_SYSCALL 0x10
#define SYSCALL		0x20

/* PGD, and tracing goes on there. */
static void put_trap(struct traced *t, uint64_t at)
{
	uint8_t p[PT_PACKET_MAX];

	put_ip(t, PT_TIP_PGD, 0);
	put(t, p, pt_packet__mode_exec_64(p));
	put_ip(t, PT_TIP_PGE, BASE + at);
}

static void put_short_tip(struct traced *t, uint64_t at)
{
	uint8_t p[PT_PACKET_MAX];

	put(t, p, pt_packet__ip(p, PT_TIP, PT_IP_UPDATE_16, BASE + at));
}

/* The call's return is compressed: nobody forgets the call. */
static void test_the_same_place(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE);
	put_trap(t, F + 1);
	put_tnt(t, "T");
	put_tip(t, G);
	expect(t, BRANCH_BEGIN, 0, 0, BASE, 0);
	expect(t, BRANCH_CALL, 1, BASE, BASE + F, 5);
	expect(t, BRANCH_END_ASYNC, 1, BASE + F + 1, 0, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + F + 1, 0);
	expect(t, BRANCH_RETURN, 2, BASE + F + 2, BASE + 5, 1);
	expect(t, BRANCH_CALL, 2, BASE + 8, BASE + G, 2);
	expect(t, BRANCH_END, 0, BASE + G, 0, 0);
	check(t);
}

/* The kernel did the instruction under the probe: a call, and a condition. */
static void test_behind_what_the_kernel_did(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE);
	put_trap(t, F);
	put_tnt(t, "T");
	put_tip(t, G);
	put_trap(t, G + 3);
	put_tnt(t, "T");
	expect(t, BRANCH_BEGIN, 0, 0, BASE, 0);
	expect(t, BRANCH_CALL, 1, BASE, BASE + F, 5);
	expect(t, BRANCH_END_ASYNC, 0, BASE + F, 0, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + F, 0);
	expect(t, BRANCH_RETURN, 3, BASE + F + 2, BASE + 5, 1);
	expect(t, BRANCH_CALL, 2, BASE + 8, BASE + G, 2);
	expect(t, BRANCH_END_ASYNC, 0, BASE + G, 0, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + G, 0);
	expect(t, BRANCH_COND, 0, BASE + G, BASE + G + 3, 2);
	expect(t, BRANCH_RETURN, 1, BASE + G + 3, BASE + 0xa, 1);
	expect(t, BRANCH_END, 0, BASE + 0xa, 0, 0);
	check(t);
}

/* The stream ends with a call from where it goes on. */
static void check_call_from(struct traced *t, uint64_t site)
{
	put_short_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + site, 0);
	expect(t, BRANCH_CALL, 1, BASE + site, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
}

/* The block's last instruction is a syscall, and this is not it. */
static void test_in_front_of_a_syscall(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + JUMP_TO_SYSCALL);
	put_trap(t, JUMP_TO_SYSCALL);
	put_trap(t, SITE_1);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + JUMP_TO_SYSCALL, 0);
	expect(t, BRANCH_END_ASYNC, 0, BASE + JUMP_TO_SYSCALL, 0, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + JUMP_TO_SYSCALL, 0);
	expect(t, BRANCH_JUMP, 1, BASE + JUMP_TO_SYSCALL, BASE + SYSCALL, 2);
	expect(t, BRANCH_END_SYSCALL, 1, BASE + SYSCALL, 0, 2);
	check_call_from(t, SITE_1);
}

/* It did, and the kernel has the thread do it once more. */
static void test_a_syscall_that_is_restarted(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + JUMP_TO_SYSCALL);
	put_trap(t, SYSCALL);
	put_trap(t, SITE_1);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + JUMP_TO_SYSCALL, 0);
	expect(t, BRANCH_JUMP, 1, BASE + JUMP_TO_SYSCALL, BASE + SYSCALL, 2);
	expect(t, BRANCH_END_SYSCALL, 1, BASE + SYSCALL, 0, 2);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SYSCALL, 0);
	expect(t, BRANCH_END_SYSCALL, 1, BASE + SYSCALL, 0, 2);
	check_call_from(t, SITE_1);
}

/* A signal at the restorer's first instruction: its handler's sigreturn goes back to there. */
static void sigreturn_to_its_own_block(struct traced *t, uint64_t syscall)
{
	put_psb(t, 100, BASE + RESTORER);
	put_trap(t, RESTORER);
	put_trap(t, SITE_1);
	for (unsigned int i = 0; i < 2; i++) {
		expect(t, BRANCH_BEGIN, 0, 0, BASE + RESTORER, 0);
		expect(t, BRANCH_END_SYSCALL, 2, BASE + syscall, 0, 2);
	}
	check_call_from(t, SITE_1);
}

static void test_a_sigreturn_to_its_own_block(void **state)
{
	sigreturn_to_its_own_block(*state, RESTORER + 7);
}

static void test_a_sigreturn_by_eax(void **state)
{
	static const uint8_t code[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
	struct traced *t = *state;

	memcpy(t->rec.images.v[0].data + RESTORER, code, sizeof(code));
	sigreturn_to_its_own_block(t, RESTORER + 5);
}

/* mov $15, %r8d: any syscall. */
static void test_what_only_looks_like_a_sigreturn(void **state)
{
	static const uint8_t code[] = {0x41, 0xb8, 15, 0, 0, 0, 0x0f, 0x05};
	struct traced *t = *state;

	memcpy(t->rec.images.v[0].data + RESTORER, code, sizeof(code));
	put_psb(t, 100, BASE + RESTORER);
	put_trap(t, RESTORER);
	put_trap(t, SITE_1);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + RESTORER, 0);
	expect(t, BRANCH_END_ASYNC, 0, BASE + RESTORER, 0, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + RESTORER, 0);
	expect(t, BRANCH_END_SYSCALL, 2, BASE + RESTORER + 6, 0, 2);
	check_call_from(t, SITE_1);
}

/* An IRET goes anywhere: nop; iretq. */
static void test_an_iret_to_its_own_block(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, KERNEL);
	put_ip(t, PT_TIP_PGD, 0);
	put_ip(t, PT_TIP_PGE, KERNEL);
	put_trap(t, SITE_1);
	for (unsigned int i = 0; i < 2; i++) {
		expect(t, BRANCH_BEGIN, 0, 0, KERNEL, 0);
		expect(t, BRANCH_END_SYSCALL, 2, KERNEL + 1, 0, 2);
	}
	check_call_from(t, SITE_1);
}

/* A place that the thread cannot have come to: the code is not what ran. */
static void test_another_place(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_trap(t, F);
	put_tip(t, SITE_2);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect_gap(t, GAP_MISMATCH, BASE + SITE_1);
	t->taken.list.v[1].n_insns = 1;
	expect(t, BRANCH_BEGIN, 0, 0, BASE + F, 0);
	expect(t, BRANCH_RETURN, 3, BASE + F + 2, BASE + SITE_2, 1);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
}

/* Where it ends for good, the last that is known is where it was. */
static void test_no_place(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_ip(t, PT_TIP_PGD, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_END, 0, BASE + SITE_1, 0, 0);
	check(t);
}

/* There was no code, but packets there were: two bytes of an IP are enough behind it. */
static void test_the_last_ip_outlives_missing_code(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_short_tip(t, CODE_SIZE);
	put_tnt(t, "TN");
	put_short_tip(t, SITE_2);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + CODE_SIZE, 2);
	expect_gap(t, GAP_UNMAPPED, BASE + CODE_SIZE);
	check_call_from(t, SITE_2);
}

/* Called where there was no code: the return is right, and where it went is not known. */
static void test_a_caller_in_missing_code(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_short_tip(t, CODE_SIZE);
	put_short_tip(t, SMALL);
	put_tnt(t, "T");
	put_short_tip(t, SITE_2);
	put_short_tip(t, SMALL);
	put_tnt(t, "T");
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + CODE_SIZE, 2);
	expect_gap(t, GAP_UNMAPPED, BASE + CODE_SIZE);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SMALL, 0);
	expect_gap(t, GAP_CALLER, BASE + SMALL_2);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_2, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect(t, BRANCH_RETURN, 2, BASE + SMALL_2, BASE + RET_2, 1);
	expect(t, BRANCH_END, 0, BASE + RET_2, 0, 0);
	check(t);
	assert_int_equal(t->totals.gaps[GAP_CALLER], 1);
	assert_int_equal(t->totals.gaps[GAP_MISMATCH], 0);
}

/* Without a gap nothing can have called. */
static void test_a_caller_that_cannot_be(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SMALL);
	put_tnt(t, "T");
	traced__decode(t);
	assert_int_equal(t->totals.gaps[GAP_MISMATCH], 1);
	assert_int_equal(t->totals.gaps[GAP_CALLER], 0);
}

#define BAD 0x05

static void put_calls(struct traced *t, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		put_short_tip(t, SMALL);
		put_tnt(t, "T");
		put_tip(t, SITE_1);
	}
}

static uint64_t count(const struct traced *t, enum branch_kind kind)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t->seen.list.n; i++)
		n += t->seen.list.v[i].kind == kind;
	return n;
}

/* Twenty calls, and bytes that are no packet. */
static void put_damaged(struct traced *t, const uint8_t *bad, unsigned int n)
{
	put_psb(t, 100, BASE + SITE_1);
	put_calls(t, 20);
	put(t, bad, n);
}

/* One gap, and so many calls before and after it. */
static void check_damaged(struct traced *t, uint64_t calls)
{
	traced__decode(t);
	assert_int_equal(t->totals.gaps[GAP_BAD_PACKET], 1);
	assert_int_equal(t->totals.gaps[GAP_CALLER], 0);
	assert_int_equal(count(t, BRANCH_GAP), 1);
	assert_int_equal(count(t, BRANCH_CALL), calls);
}

/* call SMALL; ret; ret to SITE_1 again. */
static void test_a_bad_byte_between_packets(void **state)
{
	const uint8_t bad = BAD;
	struct traced *t = *state;

	put_damaged(t, &bad, 1);
	put_calls(t, 20);
	check_damaged(t, 40);
	assert_int_equal(count(t, BRANCH_RETURN), 80);
}

/* A TIP is lost: the next that fits is where it goes on, and no clock is set in between. */
static void test_a_bad_byte_for_a_packet(void **state)
{
	static const uint8_t bad[] = {BAD, 0x19, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70};
	struct traced *t = *state;

	put_damaged(t, bad, sizeof(bad));
	put_tnt(t, "T");
	put_tip(t, SITE_1);
	put_calls(t, 20);
	put_tsc(t, 200);
	put_calls(t, 1);
	check_damaged(t, 41);
	assert_int_equal(t->totals.last_ns, t->now);
}

/* Damaged bytes that are packets: a mode is no mode where no TIP follows, or 64-bit code would end.
 */
static void test_a_mode_that_is_none(void **state)
{
	static const uint8_t mode_32[] = {0x99, 0x02, 0x00, 0x03};
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_calls(t, 20);
	put_short_tip(t, SMALL);
	put(t, mode_32, sizeof(mode_32));
	put_tnt(t, "T");
	put_tip(t, SITE_1);
	put_calls(t, 20);
	traced__decode(t);
	assert_int_equal(count(t, BRANCH_GAP), 0);
	assert_int_equal(count(t, BRANCH_CALL), 41);
}

/* What looks like a TIP fits no code behind it. */
static void test_a_packet_that_is_none(void **state)
{
	static const uint8_t bad[] = {BAD, 0x2d, 0x08, 0x10};
	struct traced *t = *state;

	put_damaged(t, bad, sizeof(bad));
	put_tnt(t, "T");
	put_tip(t, SITE_1);
	put_calls(t, 20);
	check_damaged(t, 40);
	for (size_t i = 0; i < t->seen.list.n; i++)
		assert_true(t->seen.list.v[i].to != BASE + 0x8);
}

/*
 * A lost return, and one too many in the code that ran meanwhile: calls from before the gap are
 * still pending for those after it, where what follows fits.
 */
static void test_calls_of_before_a_gap(void **state)
{
	static const uint8_t bad[] = {BAD, BAD, BAD, BAD, BAD};
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_2);
	put_short_tip(t, SITE_1);
	put(t, bad, sizeof(bad));
	/* Back from SITE_1's call, which is not known: its own return is. */
	put_tip(t, SMALL);
	put_tnt(t, "T");
	put_tip(t, SITE_1);
	put_calls(t, 20);
	check_damaged(t, 21);
	assert_int_equal(count(t, BRANCH_RETURN), 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_same_place),
		TEST(test_behind_what_the_kernel_did),
		TEST(test_in_front_of_a_syscall),
		TEST(test_a_syscall_that_is_restarted),
		TEST(test_a_sigreturn_to_its_own_block),
		TEST(test_a_sigreturn_by_eax),
		TEST(test_what_only_looks_like_a_sigreturn),
		TEST(test_an_iret_to_its_own_block),
		TEST(test_another_place),
		TEST(test_no_place),
		TEST(test_the_last_ip_outlives_missing_code),
		TEST(test_a_caller_in_missing_code),
		TEST(test_a_caller_that_cannot_be),
		TEST(test_a_bad_byte_between_packets),
		TEST(test_a_bad_byte_for_a_packet),
		TEST(test_a_mode_that_is_none),
		TEST(test_a_packet_that_is_none),
		TEST(test_calls_of_before_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
