// SPDX-License-Identifier: MIT
/* Command lines that are wrong: what is said of them. */
#include "options_fixture.h"

static void test_unknown(void **state)
{
	struct outcome o = PARSE("-symbl", "f");

	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_unknown_option, "attach", "-symbl");
	ASSERT_HINT(o.messages, TEXT_meant_option, "symbol", "attach");
	o = PARSE("-pid", "1", "--treshold=10us", "x");
	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_unknown_option, "attach", "--treshold");
	ASSERT_HINT(o.messages, TEXT_meant_option, "threshold", "attach");
	o = PARSE("-banana");
	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_unknown_option, "attach", "-banana");
	ASSERT_HINT(o.messages, TEXT_options_listed, "attach");
	o = PARSE("-pd");
	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_unknown_option, "attach", "-pd");
	ASSERT_HINT(o.messages, TEXT_meant_option, "pid", "attach");
	o = PARSE("-hlep");
	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_unknown_option, "attach", "-hlep");
	ASSERT_HINT(o.messages, TEXT_meant_option, "help", "attach");
}

/* What getopt has special cases for. */
static void test_odd_words(void **state)
{
	static char *const words[] = {"-x", "-:", "-:x", "-?", "-+x", "-=x", "---", "--="};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char option[8];
		struct outcome o = PARSE(words[i]);

		snprintf(option, sizeof(option), "%.*s", (int)strcspn(words[i], "="), words[i]);
		ASSERT_REFUSED(o);
		ASSERT_ERROR(o.messages, TEXT_unknown_option, "attach", option);
		ASSERT_HINT(o.messages, TEXT_options_listed, "attach");
	}
}

/* "-ouptut x" must not write to a file "uptut". */
static void test_letters_take_nothing_glued(void **state)
{
	struct outcome o = PARSE("-ouptut", "x");

	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_unknown_option, "attach", "-ouptut");
	ASSERT_HINT(o.messages, TEXT_meant_option, "output", "attach");
	assert_null(o.settings.output);
}

static void test_ambiguous(void **state)
{
	struct outcome o = PARSE("-multi");

	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_ambiguous_option, "attach", "-multi");
	ASSERT_HINT(o.messages, TEXT_possible_options, "-multi-thread, -multi-snapshot");
	/* An option with two names is listed once. */
	o = PARSE("--m=3");
	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_ambiguous_option, "attach", "--m");
	ASSERT_HINT(o.messages, TEXT_possible_options, "-memory, -multi-thread, -multi-snapshot");
}

static void assert_needs_argument(const struct outcome *o)
{
	ASSERT_REFUSED(*o);
	ASSERT_ERROR(o->messages, TEXT_option_needs_argument, "attach", "-symbol");
	ASSERT_HINT(o->messages, "-symbol NAME: the function to stop at");
}

static void test_missing_argument(void **state)
{
	struct outcome o = PARSE("-pid", "1", "-symbol");

	assert_needs_argument(&o);
	/* The next option is no argument, and neither is what ends the options. */
	o = PARSE("-symbol", "-pid", "1");
	assert_needs_argument(&o);
	o = PARSE("-symbol", "--", "./prog");
	assert_needs_argument(&o);
	assert_null(o.settings.symbol);
	/* But a word may begin with a dash, and "=" says that it is meant. */
	o = PARSE("-symbol", "-[NSObject init]");
	ASSERT_PARSED(o);
	assert_string_equal(o.settings.symbol, "-[NSObject init]");
	o = PARSE("-symbol=-pid", "-output", "-");
	ASSERT_PARSED(o);
	assert_string_equal(o.settings.symbol, "-pid");
	assert_string_equal(o.settings.output, "-");
}

static void test_needless_argument(void **state)
{
	struct outcome o = PARSE("-multi-thread=yes");

	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_option_takes_none, "attach", "-multi-thread", "yes");
	ASSERT_HINT(o.messages, TEXT_leave_out_value);
}

static void test_bad_values(void **state)
{
	struct outcome o = PARSE("-threshold", "10");

	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_bad_value, "attach", "threshold", "10", TEXT_not_a_duration);
	ASSERT_HINT(o.messages, TEXT_duration_units);
	assert_int_equal(o.settings.threshold_ns, 7);
	o = PARSE("-t", "99999999999999s");
	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_bad_value, "attach", "threshold", "99999999999999s",
		     TEXT_too_large);
	ASSERT_HINT(o.messages, TEXT_duration_maximum);
	o = PARSE("-memory", "4X");
	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_bad_value, "attach", "memory", "4X", TEXT_not_a_size);
	ASSERT_HINT(o.messages, TEXT_size_units);
	o = PARSE("-format", "xml");
	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_bad_value, "attach", "format", "xml", TEXT_not_a_choice);
	ASSERT_HINT(o.messages, TEXT_choices, "format", "fxt, json, text");
	assert_int_equal(o.settings.format, 2);
}

static void test_bad_ints(void **state)
{
	static const char *const bad[] = {
		"",    "x",   "12x",  "-x",  "-",
		"+12", " 12", "0x12", "1.5", "99999999999999999999999999x"};
	struct outcome o = PARSE("-pid", "2147483648");

	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_bad_value, "attach", "pid", "2147483648", TEXT_too_large);
	ASSERT_HINT(o.messages, TEXT_whole_numbers, "pid", INT_MAX);
	o = PARSE("-pid", "99999999999999999999999999");
	ASSERT_ERROR(o.messages, TEXT_too_large);
	o = PARSE("-pid", "-12");
	ASSERT_REFUSED(o);
	ASSERT_ERROR(o.messages, TEXT_bad_value, "attach", "pid", "-12", TEXT_negative);
	ASSERT_HINT(o.messages, TEXT_whole_numbers, "pid", INT_MAX);
	o = PARSE("-pid", "2147483647");
	ASSERT_PARSED(o);
	assert_int_equal(o.settings.pid, INT_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o = PARSE("-pid", (char *)bad[i]);
		ASSERT_REFUSED(o);
		ASSERT_ERROR(o.messages, TEXT_bad_value, "attach", "pid", bad[i],
			     TEXT_not_a_number);
		ASSERT_HINT(o.messages, TEXT_whole_numbers, "pid", INT_MAX);
		assert_int_equal(o.settings.pid, -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_odd_words),
		cmocka_unit_test(test_letters_take_nothing_glued),
		cmocka_unit_test(test_ambiguous),
		cmocka_unit_test(test_missing_argument),
		cmocka_unit_test(test_needless_argument),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_bad_ints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
