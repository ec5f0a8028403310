// SPDX-License-Identifier: MIT
/* Command lines that are wrong: what is said of them. */
#include "options_fixture.h"

static void test_unknown(void **state)
{
	struct outcome o = PARSE("-symbl", "f");

	ASSERT_REFUSED(o, "mtbpf: attach: unknown option '-symbl'\n"
			  "hint: did you mean -symbol? (mtbpf attach -help lists them)\n");
	o = PARSE("-pid", "1", "--treshold=10us", "x");
	ASSERT_REFUSED(o, "mtbpf: attach: unknown option '--treshold'\n"
			  "hint: did you mean -threshold? (mtbpf attach -help lists them)\n");
	o = PARSE("-banana");
	ASSERT_REFUSED(o, "mtbpf: attach: unknown option '-banana'\n"
			  "hint: mtbpf attach -help lists the options\n");
	o = PARSE("-pd");
	ASSERT_REFUSED(o, "mtbpf: attach: unknown option '-pd'\n"
			  "hint: did you mean -pid? (mtbpf attach -help lists them)\n");
	o = PARSE("-hlep");
	ASSERT_REFUSED(o, "mtbpf: attach: unknown option '-hlep'\n"
			  "hint: did you mean -help? (mtbpf attach -help lists them)\n");
}

/* What getopt has special cases for. */
static void test_odd_words(void **state)
{
	static char *const words[] = {"-x", "-:", "-:x", "-?", "-+x", "-=x", "---", "--="};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char text[200];
		struct outcome o = PARSE(words[i]);

		snprintf(text, sizeof(text),
			 "mtbpf: attach: unknown option '%.*s'\n"
			 "hint: mtbpf attach -help lists the options\n",
			 (int)strcspn(words[i], "="), words[i]);
		ASSERT_REFUSED(o, text);
	}
}

/* "-ouptut x" must not write to a file "uptut". */
static void test_letters_take_nothing_glued(void **state)
{
	struct outcome o = PARSE("-ouptut", "x");

	ASSERT_REFUSED(o, "mtbpf: attach: unknown option '-ouptut'\n"
			  "hint: did you mean -output? (mtbpf attach -help lists them)\n");
	assert_null(o.settings.output);
}

static void test_ambiguous(void **state)
{
	struct outcome o = PARSE("-multi");

	ASSERT_REFUSED(o, "mtbpf: attach: ambiguous option '-multi'\n"
			  "hint: possible options are -multi-thread, -multi-snapshot\n");
	/* An option with two names is listed once. */
	o = PARSE("--m=3");
	ASSERT_REFUSED(o, "mtbpf: attach: ambiguous option '--m'\n"
			  "hint: possible options are -memory, -multi-thread, -multi-snapshot\n");
}

static void test_missing_argument(void **state)
{
	static const char text[] = "mtbpf: attach: option '-symbol' needs an argument\n"
				   "hint: -symbol NAME: the function to stop at\n";
	struct outcome o = PARSE("-pid", "1", "-symbol");

	ASSERT_REFUSED(o, text);
	/* The next option is no argument, and neither is what ends the options. */
	o = PARSE("-symbol", "-pid", "1");
	ASSERT_REFUSED(o, text);
	o = PARSE("-symbol", "--", "./prog");
	ASSERT_REFUSED(o, text);
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

	ASSERT_REFUSED(o, "mtbpf: attach: option '-multi-thread' takes no argument, "
			  "but got 'yes'\n"
			  "hint: leave out the value: giving the option turns it on\n");
}

static void test_bad_values(void **state)
{
	struct outcome o = PARSE("-threshold", "10");

	ASSERT_REFUSED(o, "mtbpf: attach: -threshold '10' is not a duration\n"
			  "hint: durations need a unit: 10ns, 10us, 10ms, 10s, 10min or 10h\n");
	assert_int_equal(o.settings.threshold_ns, 7);
	o = PARSE("-t", "99999999999999s");
	ASSERT_REFUSED(o, "mtbpf: attach: -threshold '99999999999999s' is too large\n"
			  "hint: the maximum duration is 292 years\n");
	o = PARSE("-memory", "4X");
	ASSERT_REFUSED(o, "mtbpf: attach: -memory '4X' is not a size\n"
			  "hint: sizes are bytes or have a unit: 4096, 256K, 4M or 1G\n");
	o = PARSE("-format", "xml");
	ASSERT_REFUSED(o, "mtbpf: attach: -format 'xml' is not one of its choices\n"
			  "hint: -format takes one of: fxt, json, text\n");
	assert_int_equal(o.settings.format, 2);
}

static void test_bad_ints(void **state)
{
	static const char *const bad[] = {
		"", "x", "12x", "-12", "+12", " 12", "0x12", "1.5", "99999999999999999999999999x"};
	struct outcome o = PARSE("-pid", "2147483648");

	ASSERT_REFUSED(o, "mtbpf: attach: -pid '2147483648' is too large\n"
			  "hint: -pid takes a whole number from 0 to 2147483647\n");
	o = PARSE("-pid", "99999999999999999999999999");
	assert_non_null(strstr(o.messages, "is too large"));
	o = PARSE("-pid", "2147483647");
	ASSERT_PARSED(o);
	assert_int_equal(o.settings.pid, INT_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text),
			 "mtbpf: attach: -pid '%s' is not a whole number\n"
			 "hint: -pid takes a whole number from 0 to 2147483647\n",
			 bad[i]);
		o = PARSE("-pid", (char *)bad[i]);
		ASSERT_REFUSED(o, text);
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
