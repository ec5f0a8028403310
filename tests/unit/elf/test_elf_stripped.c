// SPDX-License-Identifier: MIT
/* What is known of functions that have no symbol: main(), and which pieces are one. */
#include "target/elf/elf_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "eh_image.h"
#include "util/cleanup.h"

/* Landing pads at 0x1080, 0x1090 and 0x1310. */
static const struct eh_function functions[] = {
	{NULL, 0x1000, 0x100, {{0x10, 5, 0x80}, {0x20, 5, 0x90}, {0x30, 5, 0x310}}},
	{NULL, 0x1100, 0x100, {{0}}},
	{NULL, 0x1200, 0x100, {{0}}},
	{NULL, 0x1300, 0x100, {{0}}},
	{"named", 0x1400, 0x100, {{0x10, 5, 0x80}}},
};

struct code {
	uint64_t at;
	const char *bytes;
	size_t len;
};

static struct elf_image *make_image(uint64_t entry, const struct code *code, size_t n)
{
	_cleanup_free_ uint8_t *bytes = eh_image__bytes(
		functions, sizeof(functions) / sizeof(functions[0]), &(struct eh_style){0});
	struct elf_image *image;

	memcpy(bytes + offsetof(Elf64_Ehdr, e_entry), &entry, sizeof(entry));
	for (size_t i = 0; i < n; i++)
		memcpy(bytes + code[i].at, code[i].bytes, code[i].len);
	image = elf_image__from_bytes(bytes, EH_SIZE, "x");
	assert_non_null(image);
	return image;
}

#define CODE(at, text)                                                                             \
	{                                                                                          \
		(at), (text), sizeof(text) - 1                                                     \
	}

static void expect_name(uint64_t entry, const char *start, size_t len, const char *name)
{
	const struct code code = {entry, start, len};
	struct elf_image *image = make_image(entry, &code, 1);
	const struct function *function = elf_image__function_at(image, 0x1002);

	assert_string_equal(function->name, name);
	assert_int_equal(function->vaddr, 0x1000);
	elf_image__free(image);
}

#define EXPECT_NAME(start, name) expect_name(0x1100, start, sizeof(start) - 1, name)

/* As glibc's linker script has it, position-independent or not, with endbr64 or without. */
static void test_main_is_what_start_passes_on(void **state)
{
	EXPECT_NAME("\x31\xed\x49\x89\xd1\x5e\x48\x8d\x3d\xf3\xfe\xff\xff\xff\x15\0\0\0\0", "main");
	EXPECT_NAME("\xf3\x0f\x1e\xfa\x31\xed\x49\x89\xd1\x48\xc7\xc7\0\x10\0\0\xe8\0\0\0\0",
		    "main");
}

static void test_whose_start_is_another_passes_nothing(void **state)
{
	/* %rdx is not kept; it calls nothing; it jumps before. */
	EXPECT_NAME("\x31\xed\x48\x8d\x3d\xf7\xfe\xff\xff\xff\x15\0\0\0\0", "[x+0x1000]");
	EXPECT_NAME("\x31\xed\x49\x89\xd1\x48\x8d\x3d\xf4\xfe\xff\xff", "[x+0x1000]");
	EXPECT_NAME("\x31\xed\x49\x89\xd1\x48\x8d\x3d\xf4\xfe\xff\xff\xeb\x00\xff\x15\0\0\0\0",
		    "[x+0x1000]");
}

/* "mov %rax,%r14; jmp" to the middle of a piece; the next pad jumps to where one begins. */
static void test_what_pads_lead_to_is_the_same_function(void **state)
{
	static const struct code code[] = {
		CODE(0x1080, "\x49\x89\xc6\xe9\x88\x01\0\0"),
		CODE(0x1090, "\xe9\x6b\0\0\0"),
	};
	struct elf_image *image = make_image(0, code, 2);
	const struct function *hot = elf_image__function_at(image, 0x1000);

	assert_int_equal(hot->vaddr, 0x1000);
	assert_ptr_equal(elf_image__function_at(image, 0x1210), hot);
	assert_ptr_equal(elf_image__function_at(image, 0x1200), hot);
	assert_ptr_equal(elf_image__function_at(image, 0x1310), hot);
	assert_string_equal(elf_image__function_at(image, 0x1100)->name, "[x+0x1100]");
	assert_string_equal(elf_image__function_at(image, 0x1410)->name, "named");
	elf_image__free(image);
}

/* What a pad does before it jumps may be a call: then it is not only on its way. */
static void test_a_pad_that_calls_leads_nowhere(void **state)
{
	static const struct code code = CODE(0x1080, "\xe8\0\0\0\0\xe9\x86\x01\0\0");
	struct elf_image *image = make_image(0, &code, 1);

	assert_string_equal(elf_image__function_at(image, 0x1210)->name, "[x+0x1200]");
	elf_image__free(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_main_is_what_start_passes_on),
		cmocka_unit_test(test_whose_start_is_another_passes_nothing),
		cmocka_unit_test(test_what_pads_lead_to_is_the_same_function),
		cmocka_unit_test(test_a_pad_that_calls_leads_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
