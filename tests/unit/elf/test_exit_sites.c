// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "trigger/probe_site.h"
#include "util/insn.h"

#define VADDR 0x1000
/* Its cold part lies before it, as the linker puts it: two instructions, and a jump back. */
#define COLD 0x0f00

static bool find_cold(void *ctx, uint64_t vaddr, struct exit_part *part)
{
	/* jne out, to 0x0800; ret; jmp to VADDR */
	static const uint8_t code[] = {0x0f, 0x85, 0xfa, 0xf8, 0xff, 0xff,
				       0xc3, 0xe9, 0xf4, 0x00, 0x00, 0x00};

	*part = (struct exit_part){code, sizeof(code), COLD};
	return vaddr >= COLD && vaddr < COLD + sizeof(code);
}

#define FIND(sites, ...)                                                                           \
	({                                                                                         \
		static const uint8_t code_[] = {__VA_ARGS__};                                      \
		const struct exit_part part_ = {code_, sizeof(code_), VADDR};                      \
		exit_sites__find(&part_, find_cold, NULL, &(sites));                               \
	})

#define FIND_RETURNS(sites, ...)                                                                   \
	({                                                                                         \
		static const uint8_t code_[] = {__VA_ARGS__};                                      \
		const struct exit_part part_ = {code_, sizeof(code_), VADDR};                      \
		exit_sites__find_returns(&part_, &(sites));                                        \
	})

#define RET    0xc3
#define NOP    0x90
#define RET_16 0xc2, 0x10, 0x00

static void test_each_return(void **state)
{
	struct exit_sites sites = {.n_jumps = 1};

	/* test %edi,%edi; je +1; ret; ret 16 */
	assert_int_equal(FIND(sites, 0x85, 0xff, 0x74, 0x01, RET, RET_16), 0);
	assert_int_equal(sites.n, 2);
	assert_int_equal(sites.at[0], 4);
	assert_int_equal(sites.at[1], 5);
	assert_int_equal(sites.n_jumps, 0);
}

static void test_jumps_out_are_tail_calls(void **state)
{
	struct exit_sites sites;

	/* jmp to the second nop; nop; nop; jmp far behind the end */
	assert_int_equal(FIND(sites, 0xeb, 0x01, NOP, NOP, 0xe9, 0x00, 0x01, 0x00, 0x00), 0);
	assert_int_equal(sites.n, 1);
	assert_int_equal(sites.at[0], 4);
	assert_int_equal(sites.n_jumps, 1);
	assert_int_equal(sites.first_jump, 4);
	/* ret; jmp through %rax, and out */
	assert_int_equal(FIND(sites, RET, 0xff, 0xe0, 0xe9, 0x00, 0x01, 0x00, 0x00), 0);
	assert_int_equal(sites.n_jumps, 2);
	assert_int_equal(sites.first_jump, 1);
	/* To the entry: a loop. */
	assert_int_equal(FIND(sites, NOP, 0xeb, 0xfd), -ENOENT);
}

/* V8's return: with as many arguments as it expects, or with those that it finds. */
static void test_returns_of_a_jit(void **state)
{
	struct exit_sites sites;

	/* ja +3; ret 16; pop %r10; lea (%rsp,%rcx,8),%rsp; push %r10; ret */
	assert_int_equal(FIND_RETURNS(sites, 0x77, 0x03, RET_16, 0x41, 0x5a, 0x48, 0x8d, 0x24, 0xcc,
				      0x41, 0x52, RET),
			 0);
	assert_int_equal(sites.n, 2);
	assert_int_equal(sites.at[0], 2);
	assert_int_equal(sites.at[1], 5);
	/* Another register than the one that was taken: what it returns to is not known. */
	assert_int_equal(FIND_RETURNS(sites, 0x41, 0x5a, 0x48, 0x8d, 0x24, 0xcc, 0x41, 0x53, RET),
			 0);
	assert_int_equal(sites.n, 1);
	assert_int_equal(sites.at[0], 8);
}

static void test_returns_of_a_jit_among_data(void **state)
{
	struct exit_sites sites;

	/* jmp +2; data, whose last byte would swallow the nop and the ret; nop; ret; a jump out */
	assert_int_equal(
		FIND_RETURNS(sites, 0xeb, 0x02, NOP, 0xb8, NOP, RET, 0xe9, 0x00, 0x01, 0x00, 0x00),
		0);
	assert_int_equal(sites.n, 1);
	assert_int_equal(sites.at[0], 5);
	/* A handler that only the runtime enters: jmp to itself; ret */
	assert_int_equal(FIND_RETURNS(sites, 0xeb, 0xfe, RET), 0);
	assert_int_equal(sites.at[0], 2);
	/* Nothing but an invalid instruction, and a jump. */
	assert_int_equal(FIND_RETURNS(sites, 0xeb, 0xfe, 0x06), -ENOENT);
}

static void test_conditional_jumps_out(void **state)
{
	struct exit_sites sites;

	/* je out; je to the ret; ret */
	assert_int_equal(FIND(sites, 0x74, 0x70, 0x74, 0x00, RET), 0);
	assert_int_equal(sites.n, 2);
	assert_int_equal(sites.at[0], 0);
	assert_int_equal(sites.condition[0], INSN_CONDITION | 4);
	assert_int_equal(sites.at[1], 4);
	assert_int_equal(sites.condition[1], 0);
	/* bnd jg out, of 32 bits */
	assert_int_equal(FIND(sites, 0xf2, 0x0f, 0x8f, 0x00, 0x10, 0x00, 0x00), 0);
	assert_int_equal(sites.condition[0], INSN_CONDITION | 15);
	/* jrcxz out: no flag tells. */
	assert_int_equal(FIND(sites, 0xe3, 0x70, RET), -EOPNOTSUPP);
}

static void test_the_cold_part_is_inside(void **state)
{
	struct exit_sites sites;

	/* jmp to COLD's ret; ret */
	assert_int_equal(FIND(sites, 0xe9, 0x01, 0xff, 0xff, 0xff, RET), 0);
	assert_int_equal(sites.n, 3);
	assert_int_equal(sites.at[0], 5);
	assert_int_equal(sites.at[1], COLD - VADDR);
	assert_int_equal(sites.condition[1], INSN_CONDITION | 5);
	assert_int_equal(sites.at[2], COLD + 6 - VADDR);
	/* je COLD; jmp to COLD: it is looked through once. */
	assert_int_equal(
		FIND(sites, 0x0f, 0x84, 0xfa, 0xfe, 0xff, 0xff, 0xe9, 0xf5, 0xfe, 0xff, 0xff), 0);
	assert_int_equal(sites.n, 2);
	/* jmp into the middle of COLD's first instruction. */
	assert_int_equal(FIND(sites, 0xe9, 0xfd, 0xfe, 0xff, 0xff, RET), -EILSEQ);
}

static void test_jumps_through_pointers(void **state)
{
	struct exit_sites sites;

	/* jmp *%rax; jmp *8(%rdi) */
	assert_int_equal(FIND(sites, 0xff, 0xe0, 0xff, 0x67, 0x08), 0);
	assert_int_equal(sites.n, 2);
}

static void test_jumps_through_tables_stay(void **state)
{
	struct exit_sites sites;

	/* jmp *0x2000(,%rax,8); ret */
	assert_int_equal(FIND(sites, 0xff, 0x24, 0xc5, 0x00, 0x20, 0x00, 0x00, RET), 0);
	assert_int_equal(sites.n, 1);
	assert_int_equal(sites.at[0], 7);
	/* movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax; ret */
	assert_int_equal(FIND(sites, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0, RET), 0);
	assert_int_equal(sites.n, 1);
	assert_int_equal(sites.at[0], 9);
}

static void test_what_may_be_data_is_refused(void **state)
{
	struct exit_sites sites;

	/* An invalid opcode. */
	assert_int_equal(FIND(sites, NOP, 0x06, RET), -EILSEQ);
	/* jmp into the middle of a mov that holds a ret. */
	assert_int_equal(FIND(sites, 0xeb, 0x01, 0xb8, RET, 0x00, 0x00, 0x00, RET), -EILSEQ);
	/* The end cuts an instruction. */
	assert_int_equal(FIND(sites, RET, 0xb8, 0x00), -EILSEQ);
}

static void test_what_takes_no_probe_is_refused(void **state)
{
	struct exit_sites sites;

	/* cs ret */
	assert_int_equal(FIND(sites, 0x2e, RET), -EOPNOTSUPP);
	assert_int_equal(FIND(sites, NOP, 0x0f, 0x0b), -ENOENT);
}

static void test_too_many(void **state)
{
	uint8_t code[EXIT_SITES_MAX + 1];
	struct exit_part part = {code, EXIT_SITES_MAX, VADDR};
	struct exit_sites sites;

	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = RET;
	assert_int_equal(exit_sites__find(&part, NULL, NULL, &sites), 0);
	assert_int_equal(sites.n, EXIT_SITES_MAX);
	part.len = sizeof(code);
	assert_int_equal(exit_sites__find(&part, NULL, NULL, &sites), -E2BIG);
	part.len = 0;
	assert_int_equal(exit_sites__find(&part, NULL, NULL, &sites), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_return),
		cmocka_unit_test(test_jumps_out_are_tail_calls),
		cmocka_unit_test(test_returns_of_a_jit),
		cmocka_unit_test(test_returns_of_a_jit_among_data),
		cmocka_unit_test(test_conditional_jumps_out),
		cmocka_unit_test(test_the_cold_part_is_inside),
		cmocka_unit_test(test_jumps_through_pointers),
		cmocka_unit_test(test_jumps_through_tables_stay),
		cmocka_unit_test(test_what_may_be_data_is_refused),
		cmocka_unit_test(test_what_takes_no_probe_is_refused),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
