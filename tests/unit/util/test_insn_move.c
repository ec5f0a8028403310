// SPDX-License-Identifier: MIT
#include "util/insn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define IP 0x401000u

static struct insn_move move(const char *bytes, size_t len)
{
	return insn__move((const uint8_t *)bytes, len, IP);
}
#define MOVE(bytes) move(bytes, sizeof(bytes) - 1)

static void test_moves_of_addresses(void **state)
{
	struct insn_move m = MOVE("\x4c\x8d\x1d\x10\0\0\0"); /* lea 0x10(%rip),%r11 */

	assert_int_equal(m.kind, MOVE_ADDRESS);
	assert_int_equal(m.reg, 11);
	assert_int_equal(m.address, IP + 7 + 0x10);
	m = MOVE("\x4c\x8d\x1d\xf0\xff\xff\xff");
	assert_int_equal(m.address, IP + 7 - 0x10);
	m = MOVE("\x49\xc7\xc3\x10\0\x40\0"); /* mov $0x400010,%r11 */
	assert_int_equal(m.kind, MOVE_ADDRESS);
	assert_int_equal(m.address, 0x400010);
	assert_int_equal(MOVE("\x48\x8d\x43\x10").kind, MOVE_OTHER);   /* lea 0x10(%rbx),%rax */
	assert_int_equal(MOVE("\x8d\x05\x10\0\0\0").kind, MOVE_OTHER); /* lea of 32 bits */
	assert_int_equal(MOVE("\xb8\x10\0\x40\0").kind, MOVE_OTHER);   /* mov of 32 bits */
}

static void assert_move(struct insn_move m, uint8_t kind, uint8_t reg, uint8_t base, int32_t disp)
{
	assert_int_equal(m.kind, kind);
	assert_int_equal(m.reg, reg);
	assert_int_equal(m.base, base);
	assert_int_equal(m.disp, disp);
}

static void test_moves_of_registers_and_memory(void **state)
{
	assert_move(MOVE("\x49\x89\x66\x10"), MOVE_STORE, INSN_RSP, INSN_R14, 0x10);
	assert_move(MOVE("\x49\x8b\x66\xf0"), MOVE_LOAD, INSN_RSP, INSN_R14, -0x10);
	assert_move(MOVE("\x4d\x89\x9e\x30\1\0\0"), MOVE_STORE, 11, INSN_R14, 0x130);
	assert_move(MOVE("\x4c\x8b\x1c\x24"), MOVE_LOAD, 11, INSN_RSP, 0);
	assert_move(MOVE("\x41\xff\x76\x10"), MOVE_PUSH_MEM, 0, INSN_R14, 0x10);
	assert_move(MOVE("\x41\x8f\x46\x10"), MOVE_POP_MEM, 0, INSN_R14, 0x10);
	assert_move(MOVE("\x48\x89\xe3"), MOVE_REG, 3, INSN_RSP, 0);
	assert_move(MOVE("\x48\x8b\xdc"), MOVE_REG, 3, INSN_RSP, 0);
	assert_move(MOVE("\x41\x53"), MOVE_PUSH, 11, 0, 0);
	assert_move(MOVE("\x41\x5b"), MOVE_POP, 11, 0, 0);
	assert_move(MOVE("\x48\x63\x04\x82"), MOVE_LOAD_ENTRY, INSN_RAX, 2, 0);
	assert_move(MOVE("\x48\x01\xc2"), MOVE_ADD, 2, 0, 0);
	assert_move(MOVE("\xff\xe2"), MOVE_JUMP, 2, 0, 0);
	/* Through an index, a segment, of 32 bits, to memory. */
	assert_int_equal(MOVE("\x49\x89\x64\x06\x10").kind, MOVE_OTHER);
	assert_int_equal(MOVE("\x64\x49\x89\x66\x10").kind, MOVE_OTHER);
	assert_int_equal(MOVE("\x41\x89\x66\x10").kind, MOVE_OTHER);
	assert_int_equal(MOVE("\x48\x63\x04\x42").kind, MOVE_OTHER);
	assert_int_equal(MOVE("\x66\x50").kind, MOVE_OTHER);
	assert_int_equal(MOVE("\xff\x22").kind, MOVE_OTHER);
	assert_int_equal(MOVE("\x90").kind, MOVE_OTHER);
	/* Cut off. */
	assert_int_equal(MOVE("\x49\x89\x66").kind, MOVE_OTHER);
}

static void test_jumps_to_what_was_popped(void **state)
{
	static const uint8_t r11[] = {0x41, 0x5b, 0x41, 0xff, 0xe3},
			     r9[] = {0x41, 0x59, 0x41, 0xff, 0xe1},
			     differ[] = {0x41, 0x5a, 0x41, 0xff, 0xe3},
			     push[] = {0x41, 0x53, 0x41, 0xff, 0xe3},
			     call[] = {0x41, 0x5b, 0x41, 0xff, 0xd3};

	assert_true(insn__jumps_to_popped(r11));
	assert_true(insn__jumps_to_popped(r9));
	assert_false(insn__jumps_to_popped(differ));
	assert_false(insn__jumps_to_popped(push));
	assert_false(insn__jumps_to_popped(call));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves_of_addresses),
		cmocka_unit_test(test_moves_of_registers_and_memory),
		cmocka_unit_test(test_jumps_to_what_was_popped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
