// SPDX-License-Identifier: MIT

#include "slices_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "decode/branch.h"
#include "decode/pt_note.h"
#include "util/meter.h"

struct expected {
	unsigned int type;
	uint64_t time;
};

/* The thread's name first, then these. */
static void expect_events(const struct fxt_reader *reader, const struct expected *expected,
			  size_t n)
{
	assert_int_equal(reader->events.n, n + 1);
	assert_int_equal(reader->events.v[0].record, 7);
	for (size_t i = 0; i < n; i++) {
		const struct read_event *event = &reader->events.v[i + 1];

		assert_int_equal(event->record, 4);
		assert_int_equal(event->type, expected[i].type);
		assert_int_equal(event->time, expected[i].time);
		assert_int_equal(event->pid, PID);
		assert_int_equal(event->tid, TID);
	}
}

#define EXPECT_EVENTS(reader, ...)                                                                 \
	do {                                                                                       \
		const struct expected expected[] = {__VA_ARGS__};                                  \
		expect_events(reader, expected, sizeof(expected) / sizeof(expected[0]));           \
	} while (0)

static void test_nesting(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;

	add_call(output, 0, 0, 100);
	add_call(output, 1, 10, 30);
	add_call(output, 2, 15, 20);
	add_call(output, 1, 40, 90);
	add_call(output, 0, 200, 210);
	reader = write_tree(output);
	EXPECT_EVENTS(reader, {BEGIN, 0}, {BEGIN, 10}, {BEGIN, 15}, {END, 20}, {END, 30},
		      {BEGIN, 40}, {END, 90}, {END, 100}, {BEGIN, 200}, {END, 210});
	assert_int_equal(output->totals.slices, 5);
	assert_int_equal(output->totals.too_deep, 0);
	assert_int_equal(output->totals.clamped, 0);
	assert_int_equal(output->totals.bytes, 8 * reader->n_words);
	reader__free(reader);
}

/* One record: but not where others lie in it, nor where it has no length. */
static void test_leaves_are_one_record(void **state)
{
	static const int types[] = {BEGIN, COMPLETE, COMPLETE, BEGIN, END, BEGIN,
				    END,   END,	     COMPLETE, BEGIN, END};
	struct output *output = *state;
	struct fxt_reader *reader;

	add_call(output, 0, 0, 100);
	add_call(output, 1, 0, 30);
	add_call(output, 1, 30, 40);
	add_call(output, 1, 40, 40);
	add_call(output, 1, 50, 50);
	add_call(output, 0, 90, 110);
	add_call(output, 0, 90, 105);
	trace_writer__thread(output->writer, &output->tree);
	reader = close_and_read_folded(output);
	assert_int_equal(reader->events.n, 1 + sizeof(types) / sizeof(types[0]));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_int_equal(reader->events.v[1 + i].type, types[i]);
	assert_int_equal(reader->events.v[2].time, 0);
	assert_int_equal(reader->events.v[2].end, 30);
	assert_int_equal(reader->events.v[3].end, 40);
	assert_int_equal(reader->events.v[9].time, 100);
	assert_int_equal(reader->events.v[9].end, 110);
	assert_string_equal(reader->events.v[3].name, "main");
	assert_int_equal(output->totals.slices, 7);
	assert_int_equal(output->totals.clamped, 3);
	reader__free(reader);
}

/* Nor where others that are not in the tree end when it does. */
static void test_a_leaf_that_was_none(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;

	add_call(output, 0, 0, 100);
	add_call(output, 1, 10, 20)->told_at_end = true;
	trace_writer__calls(output->writer, &output->tree, NULL);
	reader = close_and_read_folded(output);
	assert_int_equal(reader->events.n, 4);
	assert_int_equal(reader->events.v[1].type, BEGIN);
	assert_int_equal(reader->events.v[2].type, END);
	reader__free(reader);
}

/* Calls that are told before: no name is with them, and times go back between two. */
static void test_calls_before_the_tree(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;

	trace_writer__set_base(output->writer, BASE - 1);
	add_call(output, 7, 30, 40);
	trace_writer__calls(output->writer, &output->tree, NULL);
	output->tree.calls.n = 0;
	add_call(output, 0, 0, 100);
	reader = write_tree(output);
	assert_int_equal(reader->events.n, 5);
	assert_int_equal(reader->events.v[0].time, 31);
	assert_int_equal(reader->events.v[2].record, 7);
	assert_int_equal(reader->events.v[3].time, 1);
	assert_int_equal(output->totals.slices, 2);
	assert_int_equal(output->totals.clamped, 0);
	reader__free(reader);
}

/* A sibling ends before the next one begins, though both happen at one time. */
static void test_equal_times(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;

	add_call(output, 0, 5, 5);
	add_call(output, 1, 5, 5);
	add_call(output, 1, 5, 5);
	add_call(output, 0, 5, 5);
	reader = write_tree(output);
	EXPECT_EVENTS(reader, {BEGIN, 5}, {BEGIN, 5}, {END, 5}, {BEGIN, 5}, {END, 5}, {END, 5},
		      {BEGIN, 5}, {END, 5});
	reader__free(reader);
}

/* One call a level, 600 levels; and after the deep part, one that has its place again. */
static void test_depth_is_capped(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;
	int depth = 0, deepest = 0;

	for (uint32_t i = 0; i < 600; i++)
		add_call(output, i, i, 2000 - i);
	add_call(output, 511, 1500, 1600);
	output->tree.calls.v[511].end_ns = BASE + 1450;
	reader = write_tree(output);
	for (size_t i = 1; i < reader->events.n; i++) {
		depth += reader->events.v[i].type == BEGIN ? 1 : -1;
		assert_true(depth >= 0);
		deepest = depth > deepest ? depth : deepest;
	}
	assert_int_equal(depth, 0);
	assert_int_equal(deepest, 512);
	assert_int_equal(output->totals.slices, 513);
	assert_int_equal(output->totals.too_deep, 88);
	reader__free(reader);
}

static void test_times_before_the_base(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;

	add_call(output, 0, 0, 10)->start_ns = 1;
	add_call(output, 1, 0, 5)->start_ns = 2;
	reader = write_tree(output);
	EXPECT_EVENTS(reader, {BEGIN, 0}, {BEGIN, 0}, {END, 5}, {END, 10});
	assert_int_equal(output->totals.clamped, 2);
	reader__free(reader);
}

/* No writer of trees should do this; the trace stays well-formed all the same. */
static void test_times_that_run_backwards(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;

	add_call(output, 0, 10, 20);
	add_call(output, 1, 5, 30);
	reader = write_tree(output);
	EXPECT_EVENTS(reader, {BEGIN, 10}, {BEGIN, 10}, {END, 30}, {END, 30});
	assert_int_equal(output->totals.clamped, 2);
	reader__free(reader);
}

static void test_threads_and_processes_have_names(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;
	struct read_event *events;

	trace_writer__process(output->writer, PID, "prog");
	trace_writer__thread(output->writer, &output->tree);
	output->tree.tid = TID + 1;
	memset(output->tree.comm, 0, sizeof(output->tree.comm));
	trace_writer__thread(output->writer, &output->tree);
	reader = close_and_read(output);
	events = reader->events.v;
	assert_int_equal(reader->events.n, 3);
	assert_int_equal(events[0].type, 1);
	assert_int_equal(events[0].tid, PID);
	assert_string_equal(events[0].name, "prog");
	assert_int_equal(events[1].type, 2);
	assert_int_equal(events[1].tid, TID);
	assert_string_equal(events[1].name, "worker");
	assert_int_equal(event__arg(&events[1], "process")->type, 8);
	assert_int_equal(event__arg(&events[1], "process")->number, PID);
	assert_string_equal(events[2].name, "thread 44");
	reader__free(reader);
}

/* Two coroutines of one thread, and one of another: none is on a thread's track, or on another's.
 */
static void test_coroutines_have_tracks(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;
	uint64_t tids[3];

	add_call(output, 0, 10, 20);
	output->tree.coroutine = 1;
	strcpy(output->tree.coroutine_name, "coroutine 1");
	trace_writer__thread(output->writer, &output->tree);
	output->tree.coroutine = 2;
	trace_writer__thread(output->writer, &output->tree);
	output->tree.tid = TID + 1;
	trace_writer__thread(output->writer, &output->tree);
	reader = close_and_read(output);
	assert_int_equal(reader->events.n, 9);
	for (int i = 0; i < 3; i++) {
		const struct read_event *events = &reader->events.v[3 * i];

		assert_string_equal(events[0].name, "worker: coroutine 1");
		tids[i] = events[0].tid;
		assert_in_range(tids[i], 1 << 22, INT32_MAX);
		assert_int_equal(events[1].tid, tids[i]);
		assert_int_equal(events[1].pid, PID);
		assert_int_equal(events[2].tid, tids[i]);
	}
	assert_true(tids[0] != tids[1] && tids[1] != tids[2] && tids[0] != tids[2]);
	reader__free(reader);
}

static void test_names_and_categories_of_kinds(void **state)
{
	static const struct {
		enum call_kind kind;
		unsigned int reason;
		const char *name, *category;
		uint64_t ip;
	} kinds[] = {
		{CALL_SIGNAL, GAP_NONE, "main", "signal", 0},
		{CALL_SYSCALL, GAP_NONE, "[syscall]", "kernel", 0},
		{CALL_UNTRACED, GAP_NONE, "[untraced]", "kernel", 0},
		{CALL_UNTRACED, PT_EVENT_PAGE_FAULT, "[page fault 0x7f00]", "kernel", 0x7f00},
		{CALL_UNTRACED, PT_EVENT_PAGE_FAULT, "[page fault]", "kernel", 0},
		{CALL_UNTRACED, CFE_SMI, "[SMI]", "kernel", 0},
		{CALL_SWITCHED, GAP_NONE, "[switched out]", "switch", 0},
		{CALL_GAP, GAP_OVERFLOW, "[gap: overflow]", "gap", 0},
		{CALL_GAP, GAP_LOST, "[gap: lost]", "gap", 0},
		{CALL_NOT_RECORDED, GAP_NONE, "[not recorded]", "gap", 0},
		{CALL_NO_CALLERS, GAP_NONE, "[callers not recorded]", "gap", 0},
		{CALL_FUNCTION, GAP_NONE, "[unknown]", "user", 0},
		{CALL_FUNCTION, GAP_NONE, "[unknown]", "kernel", 0xffffffff81000000},
		{CALL_KERNEL, GAP_NONE, "[unknown]", "kernel", 0xffffffff81000000},
	};
	const size_t n = sizeof(kinds) / sizeof(kinds[0]);
	struct output *output = *state;
	struct fxt_reader *reader;

	for (size_t i = 0; i < n; i++) {
		struct call *call = add_call(output, 0, 10 * i, 10 * i + 5);

		call->kind = (uint8_t)kinds[i].kind;
		call->reason = (uint8_t)kinds[i].reason;
		call->entry_ip = kinds[i].ip;
		call->function = i ? NULL : &main_function;
	}
	reader = write_tree(output);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(reader->events.v[1 + 2 * i].name, kinds[i].name);
		assert_string_equal(reader->events.v[1 + 2 * i].category, kinds[i].category);
	}
	reader__free(reader);
}

/* Of a stretch that began before the trace only the part within is written. */
static void test_what_interrupts_took_from_the_trace_on(void **state)
{
	static const struct {
		uint64_t time_ns;
		double ns;
	} expected[] = {{1, 0}, {50, 20}, {70, 25}, {100, 25}, {110, 26}};
	struct output *output = *state;
	struct fxt_reader *reader;
	size_t n = 0;

	add_call(output, 0, 0, 200)->function = &main_function;
	*VEC_PUSH(&output->tree.interrupts) = (struct interrupts_mark){BASE - 200, BASE - 100, 9};
	*VEC_PUSH(&output->tree.interrupts) = (struct interrupts_mark){BASE - 50, BASE + 50, 40};
	*VEC_PUSH(&output->tree.interrupts) = (struct interrupts_mark){BASE + 50, BASE + 70, 5};
	*VEC_PUSH(&output->tree.interrupts) = (struct interrupts_mark){BASE + 100, BASE + 110, 1};
	reader = write_tree(output);
	for (size_t i = 0; i < reader->events.n; i++) {
		const struct read_event *event = &reader->events.v[i];
		double ns;

		if (event->record != 4 || event->type != COUNTER)
			continue;
		assert_true(n < sizeof(expected) / sizeof(expected[0]));
		memcpy(&ns, &event->args[0].number, sizeof(ns));
		assert_int_equal(event->time, expected[n].time_ns);
		assert_true(ns == expected[n].ns);
		n++;
	}
	assert_int_equal(n, sizeof(expected) / sizeof(expected[0]));
	VEC_FINI(&output->tree.interrupts);
	reader__free(reader);
}

static void test_unknown_suffix(void **state)
{
	struct trace_options options = {0};
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

	dup2(null, STDERR_FILENO);
	errno = 0;
	assert_null(trace_writer__open("/tmp/trace.json", &options));
	assert_int_equal(errno, EINVAL);
	assert_null(trace_writer__open(".fxt", &options));
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
}

#define MANY 400000

/* One that lasts, and many in it. */
static void add_many(struct output *output)
{
	for (uint64_t i = 0; i < MANY; i++)
		add_call(output, i ? 1 : 0, i, i ? i + 1 : MANY)->function = &main_function;
}

/* The file is the same; the memory of what was written long ago is not there any more. */
static void test_calls_are_forgotten_when_they_are_written(void **state)
{
	struct meter meter = {0};
	struct trace_options options = {.base_ns = BASE, .forget_calls = true, .meter = &meter};
	struct output *output = *state;
	struct fxt_reader *kept, *forgotten;
	const struct call *early;

	add_many(output);
	trace_writer__thread(output->writer, &output->tree);
	kept = close_and_read_folded(output);
	output->writer = trace_writer__open(output->path, &options);
	assert_non_null(output->writer);
	early = &output->tree.calls.v[MANY / 4];
	assert_int_not_equal(early->end_ns, 0);
	trace_writer__thread(output->writer, &output->tree);
	forgotten = close_and_read_folded(output);
	assert_int_equal(early->end_ns, 0);
	assert_int_equal(meter.done, MANY);
	assert_int_equal(kept->events.n, 2 + MANY);
	assert_int_equal(forgotten->events.n, 2 + MANY);
	for (size_t i = 0; i < kept->events.n; i++) {
		assert_int_equal(kept->events.v[i].time, forgotten->events.v[i].time);
		assert_int_equal(kept->events.v[i].type, forgotten->events.v[i].type);
	}
	reader__free(kept);
	reader__free(forgotten);
	strcat(output->path, ".old");
	unlink(output->path);
	output->path[strlen(output->path) - strlen(".old")] = '\0';
}

static void test_abort_removes_the_file(void **state)
{
	struct output *output = *state;

	trace_writer__thread(output->writer, &output->tree);
	trace_writer__abort(output->writer);
	trace_writer__abort(NULL);
	assert_int_equal(access(output->path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUTPUT_TEST(test_nesting),
		OUTPUT_TEST(test_leaves_are_one_record),
		OUTPUT_TEST(test_a_leaf_that_was_none),
		OUTPUT_TEST(test_calls_before_the_tree),
		OUTPUT_TEST(test_equal_times),
		OUTPUT_TEST(test_depth_is_capped),
		OUTPUT_TEST(test_times_before_the_base),
		OUTPUT_TEST(test_times_that_run_backwards),
		OUTPUT_TEST(test_threads_and_processes_have_names),
		OUTPUT_TEST(test_coroutines_have_tracks),
		OUTPUT_TEST(test_names_and_categories_of_kinds),
		OUTPUT_TEST(test_what_interrupts_took_from_the_trace_on),
		cmocka_unit_test(test_unknown_suffix),
		OUTPUT_TEST(test_calls_are_forgotten_when_they_are_written),
		OUTPUT_TEST(test_abort_removes_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
