// SPDX-License-Identifier: MIT
#include "kernel/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void assert_name(const char *name, size_t len, const char *expected)
{
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(name, expected, len);
}

static void test_symbols_of_the_kernel_and_of_modules(void **state)
{
	const char *text = "ffffffff81000000 T _stext\n"
			   "ffffffffc0000010 t f.isra.0\t[a_module]\n"
			   "0000000000000000 A no newline";
	struct kallsym sym;

	assert_true(kallsyms__next(&text, &sym));
	assert_true(sym.address == 0xffffffff81000000);
	assert_int_equal(sym.type, 'T');
	assert_name(sym.name, sym.name_len, "_stext");
	assert_null(sym.module);
	assert_true(kallsyms__next(&text, &sym));
	assert_name(sym.name, sym.name_len, "f.isra.0");
	assert_name(sym.module, sym.module_len, "a_module");
	assert_true(kallsyms__next(&text, &sym));
	assert_name(sym.name, sym.name_len, "no newline");
	assert_false(kallsyms__next(&text, &sym));
	assert_string_equal(text, "");
}

static void test_lines_that_are_no_symbols_are_skipped(void **state)
{
	const char *text = "\n \nzzz T x\nffffffff81000000\nffffffff81000000 \nffffffff81000000 T\n"
			   "ffffffff81000000 T \nffffffff81000001 T x\t[]\n"
			   "ffffffff81000002 T y\t[m\n\t\t[m]\n";
	struct kallsym sym;

	assert_true(kallsyms__next(&text, &sym));
	assert_true(sym.address == 0xffffffff81000001);
	assert_null(sym.module);
	assert_true(kallsyms__next(&text, &sym));
	assert_true(sym.address == 0xffffffff81000002);
	assert_null(sym.module);
	assert_false(kallsyms__next(&text, &sym));
}

static void test_finds_the_kernels_own(void **state)
{
	const char *text = "ffffffffc0000000 t _etext\t[m]\n"
			   "ffffffff81000000 T _etextual\n"
			   "ffffffff82000000 T _etext\n";
	uint64_t address = 0;

	assert_true(kallsyms__find(text, "_etext", &address));
	assert_true(address == 0xffffffff82000000);
	assert_false(kallsyms__find(text, "_stext", &address));
	assert_false(kallsyms__find("", "_stext", &address));
}

static void test_what_is_code(void **state)
{
	const char types[] = "tTwW";

	for (int c = 1; c < 256; c++) {
		struct kallsym sym = {.type = (char)c};

		assert_int_equal(kallsym__is_code(&sym), strchr(types, c) != NULL);
	}
	assert_false(kallsym__is_code(&(struct kallsym){0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols_of_the_kernel_and_of_modules),
		cmocka_unit_test(test_lines_that_are_no_symbols_are_skipped),
		cmocka_unit_test(test_finds_the_kernels_own),
		cmocka_unit_test(test_what_is_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
