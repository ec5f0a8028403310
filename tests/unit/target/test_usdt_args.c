// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/user.h>

#include "target/usdt.h"

#define PLACE(name) offsetof(struct user_regs_struct, name)

static struct mt_args parse(const char *text)
{
	struct mt_args args;

	usdt_args__parse(text, &args);
	return args;
}

static void assert_arg(const char *text, struct mt_arg expected)
{
	struct mt_args args = parse(text);

	assert_int_equal(args.n, 1);
	assert_false(args.is_library);
	assert_memory_equal(&args.v[0], &expected, sizeof(expected));
}

static void test_registers(void **state)
{
	assert_arg("8@%rdi",
		   (struct mt_arg){.kind = MT_ARG_REGISTER, .base = PLACE(rdi), .size = 8});
	assert_arg("-4@%eax",
		   (struct mt_arg){.kind = MT_ARG_REGISTER, .base = PLACE(rax), .size = -4});
	assert_arg("2@%r15w",
		   (struct mt_arg){.kind = MT_ARG_REGISTER, .base = PLACE(r15), .size = 2});
	assert_arg("-1@%sil",
		   (struct mt_arg){.kind = MT_ARG_REGISTER, .base = PLACE(rsi), .size = -1});
	assert_arg("8@%r10",
		   (struct mt_arg){.kind = MT_ARG_REGISTER, .base = PLACE(r10), .size = 8});
}

static void test_constants(void **state)
{
	assert_arg("4@$5", (struct mt_arg){.kind = MT_ARG_CONSTANT, .value = 5, .size = 4});
	assert_arg("-4@$-17",
		   (struct mt_arg){.kind = MT_ARG_CONSTANT, .value = (uint64_t)-17, .size = -4});
	assert_arg("8@$0x10", (struct mt_arg){.kind = MT_ARG_CONSTANT, .value = 16, .size = 8});
}

static void test_memory(void **state)
{
	assert_arg("8@(%rax)",
		   (struct mt_arg){.kind = MT_ARG_MEMORY, .base = PLACE(rax), .size = 8});
	assert_arg("-4@-24(%rbp)", (struct mt_arg){.kind = MT_ARG_MEMORY,
						   .base = PLACE(rbp),
						   .value = (uint64_t)-24,
						   .size = -4});
	assert_arg("1@8(%rsp,%rcx,4)", (struct mt_arg){.kind = MT_ARG_MEMORY,
						       .base = PLACE(rsp),
						       .index = PLACE(rcx),
						       .scale = 4,
						       .value = 8,
						       .size = 1});
	assert_arg("8@(%rsp,%r9)", (struct mt_arg){.kind = MT_ARG_MEMORY,
						   .base = PLACE(rsp),
						   .index = PLACE(r9),
						   .scale = 1,
						   .size = 8});
}

/* It counts, so that the others keep their numbers. */
static void test_what_is_somewhere_else(void **state)
{
	static const char *const texts[] = {
		"8f@%xmm0",
		"4@counter(%rip)",
		"4@8(%rip)",
		"8@%fs:16",
		"8@%ah",
		"8@%raxx",
		"8@",
		"8",
		"@%rax",
		"3@%rax",
		"16@%rax",
		"-16@%rax",
		"0@%rax",
		"8@(%rax",
		"8@(%rax,%rbx,3000)",
		"8@(%rax,%rbx,0)",
		"8@(%rax,)",
		"8@(%rax)x",
		"8@%raxx(",
		"8@$5x",
		"99999999999999999999@%rax",
		"8@- 5(%rax)",
		"+8@%rax",
		"8@$",
		"-9223372036854775808@%rax",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char text[80];
		struct mt_args args;

		snprintf(text, sizeof(text), "%s 8@%%rbx", texts[i]);
		args = parse(text);
		assert_true(args.n >= 2);
		assert_int_equal(args.v[0].kind, MT_ARG_UNKNOWN);
		assert_int_equal(args.v[args.n - 1].kind, MT_ARG_REGISTER);
	}
}

static void test_several(void **state)
{
	struct mt_args args = parse("  8@%rdx -4@-80(%rbx)   4@$1 ");

	assert_int_equal(args.n, 3);
	assert_int_equal(args.v[0].base, PLACE(rdx));
	assert_int_equal(args.v[1].base, PLACE(rbx));
	assert_int_equal(args.v[2].value, 1);
	assert_int_equal(parse("").n, 0);
	assert_int_equal(
		parse("8@$1 8@$2 8@$3 8@$4 8@$5 8@$6 8@$7 8@$8 8@$9 8@$10 8@$11 8@$12 8@$13").n,
		MT_ARGS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers), cmocka_unit_test(test_constants),
		cmocka_unit_test(test_memory),	  cmocka_unit_test(test_what_is_somewhere_else),
		cmocka_unit_test(test_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
