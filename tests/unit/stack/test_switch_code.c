// SPDX-License-Identifier: MIT
/* Code that may go to another stack, and code that only looks a little like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "stack/functions.h"
#include "util/insn.h"

#define AT 0x1000

struct code {
	const char *what;
	const char *bytes; /* a string, for its length: it may hold NULs */
	size_t len;
	bool is_one;
};

#define CODE(what, bytes, is_one)                                                                  \
	{                                                                                          \
		what, bytes, sizeof(bytes) - 1, is_one                                             \
	}
#define N(array) (sizeof(array) / sizeof((array)[0]))

static void test_loads(void **state)
{
	static const struct code codes[] = {
		CODE("mov %rsi, %rsp", "\x48\x89\xf4", true),
		CODE("mov %rsi, %rsp, the other way", "\x48\x8b\xe6", true),
		CODE("mov %r10, %rsp", "\x4c\x89\xd4", true),
		CODE("mov 0xa0(%rdx), %rsp", "\x48\x8b\xa2\xa0\0\0\0", true),
		CODE("xchg %rsp, %rax", "\x48\x94", true),
		CODE("xchg %rsp, (%rdi)", "\x48\x87\x27", true),
		CODE("mov %rbp, %rsp", "\x48\x89\xec", false),
		CODE("mov -8(%rbp), %rsp", "\x48\x8b\x65\xf8", false),
		CODE("mov 8(%rsp), %rsp", "\x48\x8b\x64\x24\x08", false),
		CODE("mov %rsp, %rsi", "\x48\x89\xe6", false),
		CODE("mov %rsp, (%rdi)", "\x48\x89\x27", false),
		CODE("mov $1, %rsp", "\x48\xc7\xc4\x01\0\0\0", false),
		CODE("lea -8(%r10), %rsp", "\x49\x8d\x62\xf8", false),
		CODE("add $8, %rsp", "\x48\x83\xc4\x08", false),
		CODE("leave", "\xc9", false),
		CODE("ret", "\xc3", false),
		CODE("half an instruction", "\x48\x8b", false),
	};

	for (size_t i = 0; i < N(codes); i++)
		if (insn__loads_sp((const uint8_t *)codes[i].bytes, codes[i].len) !=
		    codes[i].is_one)
			fail_msg("%s", codes[i].what);
}

static bool is_switch(const char *bytes, size_t len)
{
	struct elf_image *image = elf_image__raw(bytes, len, "code", "f");
	struct code_map *map = code_map__new();
	struct code_place place;
	bool found;

	assert_int_equal(code_map__add(map, AT, len, 0, image), 0);
	assert_true(code_map__find(map, AT, &place));
	found = switch_code__is_at(map, &place);
	code_map__free(map);
	elf_image__free(image);
	return found;
}

static void test_functions(void **state)
{
	static const struct code codes[] = {
		CODE("swap, ret", "\x48\x89\x27\x48\x89\xf4\x5d\x5b\xc3", true),
		CODE("swap, pop %rcx, jmp *%rcx", "\x48\x89\xf4\x59\xff\xe1", true),
		CODE("load, ret", "\x90\x48\x8b\x22\xc3", true),
		CODE("load, call, ret", "\x48\x89\xf4\xe8\0\0\0\0\xc3", false),
		CODE("load, jne, ret", "\x48\x89\xf4\x75\0\xc3", false),
		CODE("load, and no end", "\x48\x89\xf4\x90\x90", false),
		CODE("bytes within another instruction", "\x48\xb8\x48\x89\xf4\xc3\0\0\0\0\xc3",
		     false),
		CODE("no instruction before it", "\x06\x48\x89\xf4\xc3", false),
		CODE("longjmp: xor %fs:0x30, %r8; mov %r8, %rsp; jmp *%rdx",
		     "\x64\x4c\x33\x04\x25\x30\0\0\0\x4c\x89\xc4\xff\xe2", false),
		CODE("longjmp: xor %fs:0x30, %rdx",
		     "\x64\x48\x33\x14\x25\x30\0\0\0\x4c\x89\xc4\xff\xe2", false),
		CODE("another word of the thread's",
		     "\x64\x48\x33\x14\x25\x28\0\0\0\x4c\x89\xc4\xff\xe2", true),
		CODE("ret, load", "\xc3\x48\x89\xf4", false),
		CODE("ret", "\xc3", false),
	};

	for (size_t i = 0; i < N(codes); i++)
		if (is_switch(codes[i].bytes, codes[i].len) != codes[i].is_one)
			fail_msg("%s", codes[i].what);
}

/* Only what is short: the end of a long function is not decoded for it. */
static void test_size(void **state)
{
	char code[600];

	memset(code, 0x90, sizeof(code));
	memcpy(code + 508, "\x48\x89\xf4\xc3", 4);
	assert_true(is_switch(code, 512));
	assert_false(is_switch(code, 513));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loads),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
