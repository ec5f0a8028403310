// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "util/names.h"

static void expect(const char *text, const char *expected)
{
	char buf[LABEL_SIZE];
	size_t len;

	assert_string_equal(label__clean(buf, text, &len), expected);
	assert_int_equal(len, strlen(expected));
}

static void test_clean_names_are_not_copied(void **state)
{
	static const char *const clean[] = {"",
					    "main",
					    "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xab",
					    "\xf4\x8f\xbf\xbf",
					    "\xed\x9f\xbf",
					    "\xc2\xa0"};
	char buf[LABEL_SIZE];
	size_t len;

	for (size_t i = 0; i < sizeof(clean) / sizeof(clean[0]); i++) {
		assert_ptr_equal(label__clean(buf, clean[i], &len), clean[i]);
		assert_int_equal(len, strlen(clean[i]));
	}
}

static void test_control_characters(void **state)
{
	expect("a\nb\tc\x1b[0m\x7f", "a?b?c?[0m?");
	expect("c1 \xc2\x9b", "c1 ??");
}

static void test_ill_formed_utf8(void **state)
{
	expect("\xff", "?");
	expect("\x80x", "?x");
	expect("end \xe2\x82", "end ??");
	expect("overlong \xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf", "overlong ?? ??? ????");
	expect("surrogate \xed\xa0\x80", "surrogate ???");
	expect("too far \xf4\x90\x80\x80", "too far ????");
	expect("\xc3\xa9\xff\xc3\xa9", "\xc3\xa9?\xc3\xa9");
}

static void test_long_names_are_cut(void **state)
{
	char text[LABEL_MAX + 10], expected[LABEL_SIZE];

	memset(text, 'x', sizeof(text));
	text[LABEL_MAX] = '\0';
	expect(text, text);

	text[LABEL_MAX] = 'x';
	text[LABEL_MAX + 1] = '\0';
	memset(expected, 'x', LABEL_MAX);
	strcpy(expected + LABEL_MAX - 3, "...");
	expect(text, expected);
}

static void test_cut_keeps_characters_whole(void **state)
{
	char text[LABEL_MAX + 10], expected[LABEL_SIZE];

	memset(text, 'x', sizeof(text));
	memcpy(text + LABEL_MAX - 4, "\xc3\xa9", 2);
	text[LABEL_MAX + 9] = '\0';
	memset(expected, 'x', LABEL_MAX);
	strcpy(expected + LABEL_MAX - 4, "...");
	expect(text, expected);
}

static void test_in_place(void **state)
{
	char text[] = "a\nb\x1b[31m \xc3\xa9\xff\xe2\x82", clean[] = "ns::f(\xc3\xa9)";

	assert_false(label__is_clean(text));
	label__clean_in_place(text);
	assert_string_equal(text, "a?b?[31m \xc3\xa9???");
	assert_true(label__is_clean(text));
	label__clean_in_place(clean);
	assert_string_equal(clean, "ns::f(\xc3\xa9)");
	assert_true(label__is_clean(""));
}

static void test_too_long_is_not_clean(void **state)
{
	char text[LABEL_MAX + 2];

	memset(text, 'x', sizeof(text));
	text[LABEL_MAX + 1] = '\0';
	assert_false(label__is_clean(text));
	text[LABEL_MAX] = '\0';
	assert_true(label__is_clean(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean_names_are_not_copied),
		cmocka_unit_test(test_control_characters),
		cmocka_unit_test(test_ill_formed_utf8),
		cmocka_unit_test(test_long_names_are_cut),
		cmocka_unit_test(test_cut_keeps_characters_whole),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_too_long_is_not_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
