// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fxt_reader.h"
#include "trace/fxt.h"

#include <unistd.h>

struct output {
	char folder[32], path[48];
	struct sink *sink;
	struct fxt *fxt;
};

static int open_output(void **state)
{
	struct output *output = calloc(1, sizeof(*output));

	strcpy(output->folder, "/tmp/test_fxt.XXXXXX");
	assert_non_null(mkdtemp(output->folder));
	snprintf(output->path, sizeof(output->path), "%s/t.fxt", output->folder);
	output->sink = sink__open(output->path);
	output->fxt = fxt__new(output->sink);
	assert_non_null(output->fxt);
	*state = output;
	return 0;
}

static struct fxt_reader *read_back(struct output *output)
{
	uint64_t bytes;

	fxt__free(output->fxt);
	assert_int_equal(sink__close(output->sink, &bytes), 0);
	return reader__open(output->path);
}

static int remove_output(void **state)
{
	struct output *output = *state;

	unlink(output->path);
	rmdir(output->folder);
	free(output);
	return 0;
}

/* Everything behind the magic number and the initialization record, word for word. */
static void expect_words(struct output *output, const uint64_t *expected, size_t n)
{
	struct fxt_reader *reader = read_back(output);

	assert_int_equal(reader->n_words, n + 3);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(reader->words[3 + i], expected[i]);
	reader__free(reader);
}

#define EXPECT_WORDS(output, ...)                                                                  \
	do {                                                                                       \
		const uint64_t expected[] = {__VA_ARGS__};                                         \
		expect_words(output, expected, sizeof(expected) / sizeof(expected[0]));            \
	} while (0)

static void test_head(void **state)
{
	struct fxt_reader *reader = read_back(*state);

	assert_int_equal(reader->n_words, 3);
	assert_memory_equal(reader->words, "\x10\x00\x04\x46\x78\x54\x16\x00", 8);
	assert_int_equal(reader->words[1], 0x21);
	assert_int_equal(reader->words[2], 1000000000);
	reader__free(reader);
}

static void test_process_name(void **state)
{
	struct output *output = *state;

	fxt__name_process(output->fxt, 42, "proc");
	EXPECT_WORDS(output, 0x0000000400010022, 0x00000000636f7270, /* string 1: "proc" */
		     0x0000000001010027, 42);
}

static void test_thread_name_says_its_process(void **state)
{
	struct output *output = *state;

	fxt__name_track(output->fxt, 42, 43, 43, "thr");
	EXPECT_WORDS(output, 0x0000000300010022, 0x0000000000726874,  /* string 1: "thr" */
		     0x0000000700020022, 0x00737365636f7270,	      /* string 2: "process" */
		     0x0000010001020047, 43, 0x0000000000020028, 42); /* koid argument */
}

static void test_flow(void **state)
{
	struct output *output = *state;
	struct fxt_flow flow = {.time_ns = 1000, .pid = 42, .tid = 43, .id = 7};

	fxt__flow(output->fxt, FXT_EVENT_FLOW_BEGIN, &flow);
	flow.time_ns = 1500;
	fxt__flow(output->fxt, FXT_EVENT_FLOW_END, &flow);
	EXPECT_WORDS(output, 0x0000000000010033, 42, 43, /* thread 1 */
		     0x0000000001080034, 1000, 7, 0x00000000010a0034, 1500, 7);
}

static void test_counter(void **state)
{
	struct output *output = *state;
	struct fxt_arg arg = {.key = "x", .kind = FXT_DOUBLE, .fraction = 1.5};
	struct fxt_event event = {.time_ns = 1000,
				  .pid = 42,
				  .tid = 43,
				  .category = "",
				  .name = "ipc",
				  .args = &arg,
				  .n_args = 1};

	fxt__event(output->fxt, FXT_EVENT_COUNTER, 7, &event);
	EXPECT_WORDS(output, 0x0000000000010033, 42, 43,     /* thread 1 */
		     0x0000000300010022, 0x0000000000637069, /* string 1: "ipc" */
		     0x0000000100020022, 0x0000000000000078, /* string 2: "x" */
		     0x0001000001110054, 1000, 0x0000000000020025, 0x3ff8000000000000, 7);
}

static void test_begin_and_end(void **state)
{
	struct output *output = *state;
	struct fxt_event event = {
		.time_ns = 1000, .pid = 42, .tid = 43, .category = "user", .name = "main"};

	fxt__event(output->fxt, FXT_EVENT_BEGIN, 0, &event);
	fxt__end(output->fxt, 42, 43, 1500);
	EXPECT_WORDS(output, 0x0000000000010033, 42, 43,     /* thread 1 */
		     0x0000000400010022, 0x0000000072657375, /* string 1: "user" */
		     0x0000000400020022, 0x000000006e69616d, /* string 2: "main" */
		     0x0002000101020024, 1000, 0x0000000001030024, 1500);
}

static void test_instant_and_complete(void **state)
{
	struct output *output = *state;
	struct fxt_event event = {.time_ns = 7, .pid = 1, .tid = 2, .name = "eight by"};

	fxt__event(output->fxt, FXT_EVENT_INSTANT, 0, &event);
	fxt__event(output->fxt, FXT_EVENT_COMPLETE, 9, &event);
	EXPECT_WORDS(output, 0x0000000000010033, 1, 2,	     /* thread 1 */
		     0x0000000800010022, 0x7962207468676965, /* string 1, without padding */
		     0x0001000001000024, 7, 0x0001000001040034, 7, 9);
}

static void test_arguments(void **state)
{
	struct output *output = *state;
	const struct fxt_arg args[] = {
		{.key = "a", .kind = FXT_UINT, .number = UINT32_MAX},
		{.key = "b", .kind = FXT_UINT, .number = 0x100000000},
		{.key = "c", .kind = FXT_POINTER, .number = 0x7fffdeadbeef},
		{.key = "d", .kind = FXT_STRING, .string = "a"},
		{.key = "e", .kind = FXT_STRING, .string = ""},
	};
	struct fxt_event event = {.time_ns = 7, .pid = 1, .tid = 2, .args = args, .n_args = 5};

	fxt__event(output->fxt, FXT_EVENT_COMPLETE, 9, &event);
	EXPECT_WORDS(output, 0x0000000000010033, 1, 2, /* thread 1 */
		     0x0000000100010022, 'a', 0x0000000100020022, 'b', 0x0000000100030022, 'c',
		     0x0000000100040022, 'd', 0x0000000100050022, 'e', 0x00000000015400a4,
		     7,						 /* ten words, five arguments */
		     0xffffffff00010012,			 /* u32 */
		     0x0000000000020024, 0x100000000,		 /* u64 */
		     0x0000000000030027, 0x7fffdeadbeef,	 /* pointer */
		     0x0000000100040016, 0x0000000000050016, 9); /* strings, then the end */
}

static void expect_alike(const struct read_event *a, const struct read_event *b)
{
	assert_int_equal(a->record, b->record);
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->time, b->time);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->tid, b->tid);
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->n_args, b->n_args);
	assert_memory_equal(a->args, b->args, sizeof(a->args));
}

static void test_a_template_gives_what_the_event_would(void **state)
{
	struct output *output = *state;
	const uint64_t numbers[] = {0x7fffdeadbeef, 77, 0x402000};
	struct fxt_arg args[] = {
		{.key = "a", .kind = FXT_POINTER, .number = 1, .varies = true},
		{.key = "b", .kind = FXT_STRING, .string = "a"},
		{.key = "c", .kind = FXT_UINT, .number = UINT32_MAX, .varies = true},
		{.key = "d", .kind = FXT_UINT, .number = 0x100000000},
		{.key = "e", .kind = FXT_POINTER, .number = UINT64_MAX, .varies = true},
		{.key = "f", .kind = FXT_STRING, .string = "true"},
	};
	struct fxt_event event = {
		.time_ns = 999, .pid = 9, .tid = 9, .name = "n", .args = args, .n_args = 6};
	struct fxt_template template;
	struct fxt_reader *reader;
	const struct read_event *made;

	fxt__event(output->fxt, FXT_EVENT_BEGIN, 0, &event);
	assert_true(fxt__make_template(output->fxt, &template, &event));
	assert_true(fxt__is_current(output->fxt, &template));
	fxt__slice_from(output->fxt, &template, 1, 2, 7, 0, numbers);
	event.time_ns = 7;
	event.pid = 1;
	event.tid = 2;
	for (int i = 0; i < 3; i++)
		args[2 * i].number = numbers[i];
	fxt__event(output->fxt, FXT_EVENT_BEGIN, 0, &event);
	fxt__slice_from(output->fxt, &template, 1, 2, 7, 8, numbers);
	fxt__event(output->fxt, FXT_EVENT_COMPLETE, 8, &event);
	reader = read_back(output);
	assert_int_equal(reader->events.n, 5);
	made = reader->events.v;
	expect_alike(&made[1], &made[2]);
	expect_alike(&made[3], &made[4]);
	assert_int_equal(made[1].n_args, 6);
	assert_int_equal(made[1].time, 7);
	assert_int_equal(made[1].tid, 2);
	assert_int_equal(made[3].end, 8);
	reader__free(reader);
}

static void test_no_template_of_what_is_too_long(void **state)
{
	struct output *output = *state;
	struct fxt_arg args[8];
	struct fxt_event event = {.args = args, .n_args = 8};
	struct fxt_template template = {0};

	assert_false(fxt__is_current(output->fxt, &template));
	for (int i = 0; i < 8; i++)
		args[i] = (struct fxt_arg){.key = "k", .kind = FXT_POINTER, .number = 5};
	assert_false(fxt__make_template(output->fxt, &template, &event));
	event.n_args = 4;
	for (int i = 0; i < 4; i++)
		args[i].varies = true;
	assert_false(fxt__make_template(output->fxt, &template, &event));
	assert_false(fxt__is_current(output->fxt, &template));
	reader__free(read_back(output));
}

static void test_a_template_ends_with_its_strings(void **state)
{
	struct output *output = *state;
	struct fxt_event event = {.name = "kept"};
	struct fxt_template template;
	char name[32];

	assert_true(fxt__make_template(output->fxt, &template, &event));
	event.name = name;
	for (unsigned int i = 0; i < 32700; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		fxt__event(output->fxt, FXT_EVENT_INSTANT, 0, &event);
	}
	assert_true(fxt__is_current(output->fxt, &template));
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "new %u", i);
		fxt__event(output->fxt, FXT_EVENT_INSTANT, 0, &event);
	}
	assert_false(fxt__is_current(output->fxt, &template));
	reader__free(read_back(output));
}

static void test_too_many_arguments_are_left_out(void **state)
{
	struct output *output = *state;
	struct fxt_arg args[20];
	struct fxt_event event = {.pid = 1, .tid = 2, .args = args, .n_args = 20};
	struct fxt_reader *reader;

	for (int i = 0; i < 20; i++)
		args[i] = (struct fxt_arg){.key = "k", .kind = FXT_POINTER, .number = 5};
	fxt__event(output->fxt, FXT_EVENT_COMPLETE, 9, &event);
	reader = read_back(output);
	assert_int_equal(reader->events.v[0].record, 4);
	assert_int_equal(reader->events.v[0].n_args, 15);
	assert_int_equal(reader->events.v[0].end, 9);
	reader__free(reader);
}

static void test_unclean_names_are_cleaned(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;
	char *name = calloc(1, 65537);

	memset(name, 'y', 65536);
	fxt__name_process(output->fxt, 1, "a\nb");
	fxt__name_process(output->fxt, 2, name);
	reader = read_back(output);
	assert_string_equal(reader->events.v[0].name, "a?b");
	assert_int_equal(strlen(reader->events.v[1].name), 4096);
	assert_string_equal(reader->events.v[1].name + 4092, "y...");
	reader__free(reader);
	free(name);
}

/* 40,000 names for 32,767 indices: each event has to find its name in the table as it is then. */
static void test_string_indices_are_reused(void **state)
{
	const unsigned int n = 40000;
	struct output *output = *state;
	struct fxt_event event = {.pid = 1, .tid = 2, .category = "kept"};
	struct fxt_reader *reader;
	char name[32];

	event.name = name;
	for (unsigned int i = 0; i < 2 * n; i++) {
		snprintf(name, sizeof(name), "name %u", i % n);
		fxt__event(output->fxt, FXT_EVENT_INSTANT, 0, &event);
	}
	reader = read_back(output);
	assert_int_equal(reader->events.n, 2 * n);
	for (unsigned int i = 0; i < 2 * n; i++) {
		snprintf(name, sizeof(name), "name %u", i % n);
		assert_string_equal(reader->events.v[i].name, name);
		assert_string_equal(reader->events.v[i].category, "kept");
	}
	/* A full table is begun anew: what is in use is written once more then. */
	assert_in_range(reader->n_strings, 2 * n + 1, 2 * n + 4);
	reader__free(reader);
}

static void test_few_strings_are_written_once(void **state)
{
	struct output *output = *state;
	struct fxt_event event = {.pid = 1, .tid = 2, .category = "c"};
	struct fxt_reader *reader;
	char name[32];

	event.name = name;
	for (unsigned int i = 0; i < 65532; i++) {
		snprintf(name, sizeof(name), "name %u", i % 32700);
		fxt__event(output->fxt, FXT_EVENT_INSTANT, 0, &event);
	}
	reader = read_back(output);
	assert_int_equal(reader->n_strings, 32701);
	reader__free(reader);
}

static void test_300_threads_share_255_indices(void **state)
{
	struct output *output = *state;
	struct fxt_event event = {.pid = 7, .name = "x"};
	struct fxt_reader *reader;

	for (unsigned int i = 0; i < 3000; i++) {
		event.tid = 100 + (int)(i / 2 % 300);
		fxt__event(output->fxt, FXT_EVENT_INSTANT, 0, &event);
	}
	reader = read_back(output);
	assert_int_equal(reader->events.n, 3000);
	for (unsigned int i = 0; i < 3000; i++) {
		assert_int_equal(reader->events.v[i].pid, 7);
		assert_int_equal(reader->events.v[i].tid, 100 + i / 2 % 300);
	}
	assert_true(reader->n_threads <= 1500);
	reader__free(reader);
}

static void test_one_tid_in_two_processes(void **state)
{
	struct output *output = *state;
	struct fxt_event event = {.tid = 5, .name = "x"};
	struct fxt_reader *reader;

	for (unsigned int i = 0; i < 4; i++) {
		event.pid = 1 + (int)(i % 2);
		fxt__event(output->fxt, FXT_EVENT_INSTANT, 0, &event);
	}
	reader = read_back(output);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(reader->events.v[i].pid, 1 + i % 2);
	assert_int_equal(reader->n_threads, 2);
	reader__free(reader);
}

#define OUTPUT_TEST(test) cmocka_unit_test_setup_teardown(test, open_output, remove_output)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUTPUT_TEST(test_head),
		OUTPUT_TEST(test_process_name),
		OUTPUT_TEST(test_thread_name_says_its_process),
		OUTPUT_TEST(test_flow),
		OUTPUT_TEST(test_counter),
		OUTPUT_TEST(test_begin_and_end),
		OUTPUT_TEST(test_instant_and_complete),
		OUTPUT_TEST(test_arguments),
		OUTPUT_TEST(test_a_template_gives_what_the_event_would),
		OUTPUT_TEST(test_no_template_of_what_is_too_long),
		OUTPUT_TEST(test_a_template_ends_with_its_strings),
		OUTPUT_TEST(test_too_many_arguments_are_left_out),
		OUTPUT_TEST(test_unclean_names_are_cleaned),
		OUTPUT_TEST(test_string_indices_are_reused),
		OUTPUT_TEST(test_few_strings_are_written_once),
		OUTPUT_TEST(test_300_threads_share_255_indices),
		OUTPUT_TEST(test_one_tid_in_two_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
