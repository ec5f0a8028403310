// SPDX-License-Identifier: MIT
#include "options_fixture.h"

static void test_every_kind(void **state)
{
	struct outcome o = PARSE("-pid", "12", "-symbol", "f", "-threshold", "1.5ms", "-memory",
				 "4M", "-format", "json", "-multi-thread");

	ASSERT_PARSED(o);
	assert_int_equal(o.settings.pid, 12);
	assert_string_equal(o.settings.symbol, "f");
	assert_int_equal(o.settings.threshold_ns, 1500000);
	assert_int_equal(o.settings.memory, 4 << 20);
	assert_int_equal(o.settings.format, 1);
	assert_true(o.settings.multi_thread);
	assert_false(o.settings.multi_snapshot);
	assert_int_equal(o.rest, 12);
}

static void test_nothing_given_keeps_the_defaults(void **state)
{
	struct outcome o = parse_words(1, (char *[]){"attach", NULL});

	ASSERT_PARSED(o);
	assert_int_equal(o.settings.pid, -1);
	assert_int_equal(o.settings.threshold_ns, 7);
	assert_int_equal(o.settings.format, 2);
	assert_int_equal(o.rest, 1);
}

static void test_ways_to_write_one(void **state)
{
	char *ways[][3] = {
		{"-pid", "12"}, {"--pid", "12"},   {"-pid=12", NULL}, {"--pid=12", NULL},
		{"-pi", "12"},	{"--pi=12", NULL}, {"-p", "12"},      {"--p", "12"},
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char *argv[] = {"attach", ways[i][0], ways[i][1], NULL};
		struct outcome o = parse_words(ways[i][1] ? 3 : 2, argv);

		ASSERT_PARSED(o);
		assert_int_equal(o.settings.pid, 12);
	}
}

static void test_alias(void **state)
{
	struct outcome o = PARSE("-trigger-over", "2us");

	ASSERT_PARSED(o);
	assert_int_equal(o.settings.threshold_ns, 2000);
	/* A letter wins over the prefix of two names; and those two are of one option. */
	o = PARSE("-t", "3us");
	ASSERT_PARSED(o);
	assert_int_equal(o.settings.threshold_ns, 3000);
	o = PARSE("-tr", "4us");
	ASSERT_PARSED(o);
	assert_int_equal(o.settings.threshold_ns, 4000);
}

static void test_last_one_wins(void **state)
{
	struct outcome o = PARSE("-pid", "1", "-symbol", "f", "-pid", "2", "-symbol", "g");

	ASSERT_PARSED(o);
	assert_int_equal(o.settings.pid, 2);
	assert_string_equal(o.settings.symbol, "g");
}

static void test_stops_at_the_first_other_word(void **state)
{
	struct outcome o = PARSE("-pid", "1", "./prog", "-help", "-nonsense");

	ASSERT_PARSED(o);
	assert_int_equal(o.settings.pid, 1);
	assert_int_equal(o.rest, 3);
	o = PARSE("-pid", "1", "--", "-help");
	ASSERT_PARSED(o);
	assert_int_equal(o.settings.pid, 1);
	assert_int_equal(o.rest, 4);
	o = PARSE("-", "-pid", "2");
	ASSERT_PARSED(o);
	assert_int_equal(o.rest, 1);
}

static void test_help(void **state)
{
	static const char text[] = "  mtbpf attach -pid 12\n"
				   "  mtbpf attach -pid 12 -symbol f\n"
				   "\n"
				   "usage: mtbpf attach -pid PID -symbol NAME [options]\n"
				   "\n"
				   "Capture what a running process did.\n"
				   "\n"
				   "options:\n"
				   "  -pid, -p PID           the process\n"
				   "  -symbol NAME           the function to stop at\n"
				   "  -threshold, -trigger-over, -t TIME\n"
				   "                         only when slower than this\n"
				   "  -memory, -mem SIZE     for all rings together\n"
				   "  -format fxt|json|text  what to write\n"
				   "  -multi-thread          every thread\n"
				   "  -multi-snapshot        go on afterwards\n"
				   "  -output, -o FILE       where to\n"
				   "  -help, -h              print this text\n";
	static char *const words[] = {"-help", "--help", "-h", "--h", "-hel"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct outcome o = PARSE("-pid", "1", words[i], "-nonsense");

		assert_int_equal(o.err, -ECANCELED);
		assert_string_equal(o.messages, "");
		assert_string_equal(o.out, text);
	}
}

/* An error in the middle of a line leaves getopt in the middle of it. */
static void test_again_after_an_error(void **state)
{
	struct outcome o = PARSE("-multi-thread", "-pid", "1", "-nonsense", "-pid", "2");

	assert_int_equal(o.err, -EINVAL);
	test_every_kind(state);
	o = PARSE("-:x", "-pid", "2");
	assert_int_equal(o.err, -EINVAL);
	test_every_kind(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_nothing_given_keeps_the_defaults),
		cmocka_unit_test(test_ways_to_write_one),
		cmocka_unit_test(test_alias),
		cmocka_unit_test(test_last_one_wins),
		cmocka_unit_test(test_stops_at_the_first_other_word),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_again_after_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
