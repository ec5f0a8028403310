// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "trigger/probe_site.h"
#include "util/insn.h"

#define VADDR 0x401000

#define ENDBR64	  0xf3, 0x0f, 0x1e, 0xfa
#define PUSH_RBP  0x55
#define PUSH_R15  0x41, 0x57
#define MOV_FRAME 0x48, 0x89, 0xe5
#define SUB_RSP	  0x48, 0x83, 0xec, 0x18
#define XOR_EAX	  0x31, 0xc0
#define TEST_EDI  0x85, 0xff
#define NOP5	  0x0f, 0x1f, 0x44, 0x00, 0x00
#define RET	  0xc3
#define TEN(...)                                                                                   \
	__VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, \
		__VA_ARGS__, __VA_ARGS__, __VA_ARGS__

/* What the function is, and what must be chosen in it. */
struct choice {
	const char *what;
	struct probe_site site;
	size_t len;
	uint8_t code[64 + 16];
};

#define CODE(...) .len = sizeof((uint8_t[]){__VA_ARGS__}), .code = {__VA_ARGS__}

static const struct choice choices[] = {
	{"frame pointer, no CET", {0, true, true, "push", 0, 0}, CODE(PUSH_RBP, MOV_FRAME, RET)},
	{"behind endbr64", {4, true, true, "push", 0, 0}, CODE(ENDBR64, PUSH_RBP, MOV_FRAME, RET)},
	{"push with REX.B", {4, true, true, "push", 0, 0}, CODE(ENDBR64, PUSH_R15, RET)},
	{"behind other work",
	 {6, true, false, "push", 0, 0},
	 CODE(XOR_EAX, SUB_RSP, PUSH_RBP, RET)},
	{"behind a stack realignment",
	 {4, true, false, "push", 0, 0},
	 CODE(0x48, 0x83, 0xe4, 0xe0, PUSH_RBP, RET)}, /* and $-32,%rsp */
	{"behind work that leaves the stack alone",
	 {4, true, true, "push", 0, 0},
	 CODE(XOR_EAX, TEST_EDI, PUSH_RBP, RET)},
	{"a nop", {2, true, true, "nop", 0, 0}, CODE(XOR_EAX, 0x90, RET)},
	{"a prefixed nop", {2, true, true, "nop", 0, 0}, CODE(XOR_EAX, 0x66, 0x90, RET)},
	{"a five-byte nop is passed over",
	 {5, true, true, "push", 0, 0},
	 CODE(NOP5, PUSH_RBP, RET)},
	{"push of memory is not emulated", {0, false, true, "push", 0, 0}, CODE(0xff, 0x37, RET)},
	{"push with REX.W is not emulated", {0, false, true, "push", 0, 0}, CODE(0x48, 0x55, RET)},
	{"16-bit push is not emulated", {0, false, true, "push", 0, 0}, CODE(0x66, 0x55, RET)},
	{"nothing emulated", {0, false, true, "sub", 0, 0}, CODE(SUB_RSP, XOR_EAX, RET)},
	{"nothing, behind endbr64", {4, false, true, "sub", 0, 0}, CODE(ENDBR64, SUB_RSP, RET)},
	{"a lone ret", {4, false, true, "ret", 0, 0}, CODE(ENDBR64, RET)},

	{"not behind a branch: the branch",
	 {2, true, true, "jz", 0, 0},
	 CODE(TEST_EDI, 0x74, 0x01, PUSH_RBP, RET)},
	/* L: cmp 0x10(%r14),%rsp; jbe M; ret; M: mov; call; jmp L: Go's entry. */
	{"a check that begins anew",
	 {4, true, true, "jbe", INSN_CONDITION | 7, 0},
	 CODE(0x49, 0x3b, 0x66, 0x10, 0x76, 0x01, RET, 0x48, 0x89, 0x44, 0x24, 0x08, 0xe8, 0, 1, 0,
	      0, 0xeb, 0xed)},
	/* L: mov %rsp,%r12; sub $8192,%r12; jb M; cmp 0x10(%r14),%r12; jbe M; ret; M: call; jmp L
	 */
	{"a check of a frame beyond 4 KB: its second jump",
	 {16, true, true, "jbe", INSN_CONDITION | 7, 0},
	 CODE(0x49, 0x89, 0xe4, 0x49, 0x81, 0xec, 0, 0x20, 0, 0, 0x72, 0x07, 0x4d, 0x3b, 0x66, 0x10,
	      0x76, 0x01, RET, 0xe8, 0, 1, 0, 0, 0xeb, 0xe6)},
	/* The same, but the second one goes elsewhere. */
	{"a check, and another branch",
	 {10, true, true, "jb", INSN_CONDITION | 3, 0},
	 CODE(0x49, 0x89, 0xe4, 0x49, 0x81, 0xec, 0, 0x20, 0, 0, 0x72, 0x07, 0x4d, 0x3b, 0x66, 0x10,
	      0x76, 0x00, RET, 0xe8, 0, 1, 0, 0, 0xeb, 0xe6)},
	/* The same, but without the call, and to the instruction behind. */
	{"a loop through the entry",
	 {4, true, true, "jbe", 0, 0},
	 CODE(0x49, 0x3b, 0x66, 0x10, 0x76, 0x01, RET, 0x48, 0x89, 0x44, 0x24, 0x08, 0xeb, 0xf2)},
	{"a call that goes on elsewhere",
	 {4, true, true, "jbe", 0, 0},
	 CODE(0x49, 0x3b, 0x66, 0x10, 0x76, 0x01, RET, 0xe8, 0, 1, 0, 0, 0xeb, 0xf8)},
	{"a long jcc",
	 {2, true, true, "jnz", 0, 0},
	 CODE(TEST_EDI, 0x0f, 0x85, 1, 0, 0, 0, 0x90, RET)},
	{"a call", {4, true, false, "call", 0, 0}, CODE(SUB_RSP, 0xe8, 0, 1, 0, 0, RET)},
	{"a tail call", {4, true, true, "jmp", 0, 0}, CODE(ENDBR64, 0xe9, 0, 1, 0, 0)},
	{"jrcxz is no jcc",
	 {0, false, true, "xor", 0, 0},
	 CODE(XOR_EAX, 0xe3, 0x01, PUSH_RBP, RET)},
	{"a 16-bit call",
	 {0, false, true, "xor", 0, 0},
	 CODE(XOR_EAX, 0x66, 0xe8, 0, 0, 0, 0, RET)},
	{"an indirect call",
	 {0, false, true, "xor", 0, 0},
	 CODE(XOR_EAX, 0xff, 0xd0, PUSH_RBP, RET)},
	{"a syscall ends the block",
	 {0, false, true, "xor", 0, 0},
	 CODE(XOR_EAX, 0x0f, 5, 0x90, RET)},

	/* xor; L: push; pop; jne L */
	{"a loop back to the push",
	 {0, false, true, "xor", 0, 0},
	 CODE(XOR_EAX, PUSH_RBP, 0x5d, 0x75, 0xfc, RET)},
	/* push; L: xor; jne L */
	{"a loop back behind the push",
	 {0, true, true, "push", 0, 0},
	 CODE(PUSH_RBP, XOR_EAX, 0x75, 0xfc, RET)},
	/* L: push; xor; jne L: each round is a call of its own */
	{"a loop to the entry",
	 {0, true, true, "push", 0, 0},
	 CODE(PUSH_RBP, XOR_EAX, 0x75, 0xfb, RET)},
	/* endbr64; L: xor; push; pop; jne L */
	{"a loop to just behind endbr64",
	 {0, false, true, "endbr64", 0, 0},
	 CODE(ENDBR64, XOR_EAX, PUSH_RBP, 0x5d, 0x75, 0xfa, RET)},

	{"a refused push", {2, true, false, "push", 0, 0}, CODE(0x2e, 0x55, PUSH_RBP, RET)},
	{"a refused push and nothing else",
	 {2, false, false, "xor", 0, 0},
	 CODE(0x2e, 0x55, XOR_EAX, RET)},
	{"a refused long nop",
	 {10, false, true, "sub", 0, 0},
	 CODE(0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, SUB_RSP, RET)},
	{"too far in",
	 {0, false, true, "mov", 0, 0},
	 CODE(TEN(0x48, 0xc7, 0xc0, 0, 0, 0, 0), PUSH_RBP, RET)},
	{"the last that is near enough",
	 {63, true, true, "push", 0, 0},
	 CODE(TEN(XOR_EAX, 0x48, 0x89, 0xc1), TEN(0xf8), 0xf8, 0xf8, 0xf8, PUSH_RBP, RET)},
	{"cut off", {0, false, true, "xor", 0, 0}, CODE(XOR_EAX, 0x48)},
};

static void test_choices(void **state)
{
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		const struct choice *choice = &choices[i];
		struct probe_site site;

		print_message("  %s\n", choice->what);
		assert_int_equal(probe_site__choose(choice->code, choice->len, VADDR, 0, &site), 0);
		assert_string_equal(site.insn, choice->site.insn);
		assert_int_equal(site.skip, choice->site.skip);
		assert_int_equal(site.emulated, choice->site.emulated);
		assert_int_equal(site.at_entry, choice->site.at_entry);
		assert_int_equal(site.condition, choice->site.condition);
	}
}

/* Where arguments are read, the site is not behind an instruction that overwrites one. */
static void test_arguments_are_still_there(void **state)
{
	static const struct choice kept[] = {
		{"moves before a call",
		 {0, false, true, "sub", 0, 0},
		 CODE(SUB_RSP, 0x89, 0xf2, 0xe8, 0, 0, 0, 0, RET)}, /* mov %esi,%edx; call */
		{"moves before a tail call",
		 {0, false, true, "mov", 0, 0},
		 CODE(0x48, 0x89, 0xfe, 0xe9, 0, 1, 0, 0)}, /* mov %rdi,%rsi; jmp */
		{"a part of a register",
		 {0, false, true, "mov", 0, 0},
		 CODE(0x40, 0xb7, 1, PUSH_RBP, RET)}, /* mov $1,%dil */
		{"a hidden operand",
		 {0, false, true, "cqo", 0, 0},
		 CODE(0x48, 0x99, PUSH_RBP, RET)}, /* which writes rdx */
		{"endbr64, then a move",
		 {4, false, true, "mov", 0, 0},
		 CODE(ENDBR64, 0x48, 0x89, 0xfe, PUSH_RBP, RET)},
		{"an argument that is not read",
		 {3, true, true, "push", 0, 0},
		 CODE(0x49, 0x89, 0xf9, PUSH_RBP, RET)}, /* mov %rdi,%r9 */
		{"other registers",
		 {5, true, true, "push", 0, 0},
		 CODE(XOR_EAX, 0x48, 0x89, 0xf8, PUSH_RBP, RET)}, /* mov %rdi,%rax */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		struct probe_site site;

		print_message("  %s\n", kept[i].what);
		/* All but the last register: r9. */
		assert_int_equal(probe_site__choose(kept[i].code, kept[i].len, VADDR, 0x1f, &site),
				 0);
		assert_string_equal(site.insn, kept[i].site.insn);
		assert_int_equal(site.skip, kept[i].site.skip);
		assert_int_equal(site.emulated, kept[i].site.emulated);
		assert_int_equal(site.at_entry, kept[i].site.at_entry);
	}
}

static void test_no_instruction_at_the_entry(void **state)
{
	static const uint8_t invalid[] = {0x06, PUSH_RBP}; /* push %es: not in 64-bit mode */
	static const uint8_t cut[] = {0xe8, 0x00};
	struct probe_site site;

	assert_int_equal(probe_site__choose(invalid, sizeof(invalid), VADDR, 0, &site), -EILSEQ);
	assert_int_equal(probe_site__choose(cut, sizeof(cut), VADDR, 0, &site), -EILSEQ);
	assert_int_equal(probe_site__choose(cut, 0, VADDR, 0, &site), -EILSEQ);
}

static void assert_site(const uint8_t *code, size_t len, size_t offset, int err,
			struct probe_site expected)
{
	struct probe_site site;

	assert_int_equal(probe_site__at(code, len, VADDR, offset, &site), err);
	if (err)
		return;
	assert_string_equal(site.insn, expected.insn);
	assert_int_equal(site.skip, offset);
	assert_int_equal(site.emulated, expected.emulated);
	assert_int_equal(site.at_entry, expected.at_entry);
}

static void test_an_instruction_that_is_named(void **state)
{
	static const uint8_t code[] = {ENDBR64, MOV_FRAME, PUSH_RBP, 0x2e, 0x55, 0x06};
	const size_t len = sizeof(code);

	assert_site(code, len, 0, 0, (struct probe_site){0, false, true, "endbr64", 0, 0});
	assert_site(code, len, 4, 0, (struct probe_site){4, false, true, "mov", 0, 0});
	assert_site(code, len, 7, 0, (struct probe_site){7, true, true, "push", 0, 0});
	assert_site(code, len, 5, -EILSEQ, (struct probe_site){0});
	/* Two pushes, of which the kernel refuses the second; no instruction; behind the end. */
	assert_site(code, len, 8, -EOPNOTSUPP, (struct probe_site){0});
	assert_site(code, len, 10, -EILSEQ, (struct probe_site){0});
	assert_site(code, len, len, -EILSEQ, (struct probe_site){0});
	assert_site(code + 7, 1, 1, -EILSEQ, (struct probe_site){0});
}

/* Behind a push [sp] is no return address. */
static void test_a_named_instruction_behind_a_push(void **state)
{
	static const uint8_t code[] = {PUSH_RBP, 0x90, RET};

	assert_site(code, sizeof(code), 1, 0, (struct probe_site){1, true, false, "nop", 0, 0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_arguments_are_still_there),
		cmocka_unit_test(test_no_instruction_at_the_entry),
		cmocka_unit_test(test_an_instruction_that_is_named),
		cmocka_unit_test(test_a_named_instruction_behind_a_push),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
