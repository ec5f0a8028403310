// SPDX-License-Identifier: MIT
#include "cli/options.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

struct settings {
	int pid;
	const char *symbol;
	uint64_t threshold_ns;
	uint64_t memory;
	int format;
	bool multi_thread;
	bool multi_snapshot;
	const char *output;
};

static const char *const formats[] = {"fxt", "json", "text", NULL};

#define FIELD(field) offsetof(struct settings, field)

static const struct option_spec specs[] = {
	{"pid", NULL, 'p', OPT_INT, "PID", "the process", FIELD(pid), NULL},
	{"symbol", NULL, 0, OPT_STRING, "NAME", "the function to stop at", FIELD(symbol), NULL},
	{"threshold", "trigger-over", 't', OPT_DURATION, "TIME", "only when slower than this",
	 FIELD(threshold_ns), NULL},
	{"memory", "mem", 0, OPT_SIZE, "SIZE", "for all rings together", FIELD(memory), NULL},
	{"format", NULL, 0, OPT_CHOICE, NULL, "what to write", FIELD(format), formats},
	{"multi-thread", NULL, 0, OPT_FLAG, NULL, "every thread", FIELD(multi_thread), NULL},
	{"multi-snapshot", NULL, 0, OPT_FLAG, NULL, "go on afterwards", FIELD(multi_snapshot),
	 NULL},
	{"output", NULL, 'o', OPT_STRING, "FILE", "where to", FIELD(output), NULL},
};

static const char *const examples[] = {"mtbpf attach -pid 12", "mtbpf attach -pid 12 -symbol f",
				       NULL};

static const struct option_table table = {
	.command = "attach",
	.examples = examples,
	.usage = "attach -pid PID -symbol NAME [options]",
	.summary = "Capture what a running process did.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

/* What a parse gave, and said. */
struct outcome {
	struct settings settings;
	int err;
	int rest;
	char out[4096];
	char messages[4096];
};

/* Sends a descriptor to a nameless file until read_back(). */
struct redirect {
	FILE *file;
	int fd, saved;
};

static struct redirect redirect(int fd)
{
	struct redirect r = {.file = tmpfile(), .fd = fd, .saved = dup(fd)};

	assert_non_null(r.file);
	dup2(fileno(r.file), fd);
	return r;
}

static void read_back(struct redirect *r, char *text, size_t size)
{
	ssize_t n;

	fflush(NULL);
	dup2(r->saved, r->fd);
	close(r->saved);
	n = pread(fileno(r->file), text, size - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	fclose(r->file);
}

static struct outcome parse_words(int argc, char **argv)
{
	struct outcome o = {.settings = {.pid = -1, .threshold_ns = 7, .format = 2}, .rest = -1};
	struct redirect out, messages;

	fflush(NULL);
	out = redirect(STDOUT_FILENO);
	messages = redirect(STDERR_FILENO);
	o.err = options__parse(&table, &o.settings, argc, argv, &o.rest);
	read_back(&messages, o.messages, sizeof(o.messages));
	read_back(&out, o.out, sizeof(o.out));
	return o;
}

#define PARSE(...)                                                                                 \
	parse_words(sizeof((char *[]){"attach", __VA_ARGS__}) / sizeof(char *),                    \
		    (char *[]){"attach", __VA_ARGS__, NULL})

#define ASSERT_PARSED(o)                                                                           \
	do {                                                                                       \
		assert_string_equal((o).messages, "");                                             \
		assert_string_equal((o).out, "");                                                  \
		assert_int_equal((o).err, 0);                                                      \
	} while (0)

#define ASSERT_REFUSED(o, text)                                                                    \
	do {                                                                                       \
		assert_string_equal((o).messages, text);                                           \
		assert_string_equal((o).out, "");                                                  \
		assert_int_equal((o).err, -EINVAL);                                                \
	} while (0)

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
			  "hint: it could be one of -multi-thread, -multi-snapshot\n");
	/* An option with two names is listed once. */
	o = PARSE("--m=3");
	ASSERT_REFUSED(o, "mtbpf: attach: ambiguous option '--m'\n"
			  "hint: it could be one of -memory, -multi-thread, -multi-snapshot\n");
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
			  "hint: it is on where it is given, and off where it is not\n");
}

static void test_bad_values(void **state)
{
	struct outcome o = PARSE("-threshold", "10");

	ASSERT_REFUSED(o, "mtbpf: attach: -threshold '10' is not a duration\n"
			  "hint: durations take a unit: 10ns, 10us, 10ms, 10s, 10min or 10h\n");
	assert_int_equal(o.settings.threshold_ns, 7);
	o = PARSE("-t", "99999999999999s");
	ASSERT_REFUSED(o, "mtbpf: attach: -threshold '99999999999999s' is too large\n"
			  "hint: durations end at 292 years\n");
	o = PARSE("-memory", "4X");
	ASSERT_REFUSED(o, "mtbpf: attach: -memory '4X' is not a size\n"
			  "hint: sizes are bytes, or take a unit: 4096, 256K, 4M or 1G\n");
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
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_odd_words),
		cmocka_unit_test(test_letters_take_nothing_glued),
		cmocka_unit_test(test_ambiguous),
		cmocka_unit_test(test_missing_argument),
		cmocka_unit_test(test_needless_argument),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_bad_ints),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_again_after_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
