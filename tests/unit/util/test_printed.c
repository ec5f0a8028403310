// SPDX-License-Identifier: MIT
/* Strings of -print as text: whatever the target has in them, a terminal and a browser are safe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "util/names.h"

static const char *text_of(const char *bytes, size_t length, bool is_cut)
{
	static char buf[PRINTED_SIZE];
	struct mt_printed printed = {
		.kind = MT_PRINT_BYTES, .length = (uint16_t)length, .is_cut = is_cut};

	memcpy(printed.text, bytes, length);
	return printed__format(buf, &printed);
}

#define TEXT(literal) text_of(literal, sizeof(literal) - 1, false)

static void test_strings(void **state)
{
	assert_string_equal(TEXT("GET /index.html"), "\"GET /index.html\"");
	assert_string_equal(TEXT(""), "\"\"");
	assert_string_equal(text_of("abc", 3, true), "\"abc\"...");
	assert_string_equal(TEXT("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
			    "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"");
	assert_string_equal(TEXT("a\"b\\c"), "\"a\\\"b\\\\c\"");
}

static void test_hostile_strings(void **state)
{
	assert_string_equal(TEXT("\x1b[2J\a\n\r\t\0z\x7f"),
			    "\"\\x1b[2J\\x07\\n\\r\\t\\x00z\\x7f\"");
	/* C1 controls, overlong forms, surrogates, a character that is cut. */
	assert_string_equal(TEXT("\xc2\x9b\xc0\x80\xed\xa0\x80\xf5\xe2\x82"),
			    "\"\\xc2\\x9b\\xc0\\x80\\xed\\xa0\\x80\\xf5\\xe2\\x82\"");
	/* Right-to-left override, zero-width space, line separator, isolate, byte order mark. */
	assert_string_equal(TEXT("\xe2\x80\xae\xe2\x80\x8b\xe2\x80\xa8\xe2\x81\xa6\xef\xbb\xbf"),
			    "\"\\xe2\\x80\\xae\\xe2\\x80\\x8b\\xe2\\x80\\xa8\\xe2\\x81\\xa6"
			    "\\xef\\xbb\\xbf\"");
	/* HTML stays: whoever writes HTML escapes it. */
	assert_string_equal(TEXT("<script>&"), "\"<script>&\"");
}

static void test_all_bytes_fit(void **state)
{
	char bytes[MT_TEXT_MAX];

	for (int byte = 0; byte < 256; byte++) {
		memset(bytes, byte, sizeof(bytes));
		assert_true(label__is_clean(text_of(bytes, sizeof(bytes), true)));
	}
}

static void test_others(void **state)
{
	char buf[PRINTED_SIZE];
	struct mt_printed printed = {.kind = MT_PRINT_NUMBER, .number = (uint64_t)-5};

	assert_string_equal(printed__format(buf, &printed), "18446744073709551611");
	printed.is_signed = 1;
	assert_string_equal(printed__format(buf, &printed), "-5");
	printed.kind = MT_PRINT_NONE;
	assert_string_equal(printed__format(buf, &printed), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_hostile_strings),
		cmocka_unit_test(test_all_bytes_fit),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
