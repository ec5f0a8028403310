// SPDX-License-Identifier: MIT
#include "trace_fixture.h"

#include "mtbpf_shared.h"

static const struct function main_function = {.name = "main"};

/* Instead of user/target's, which needs an ELF file. */
bool function__source(const struct function *function, struct source_place *place)
{
	return false;
}

static void write_hit(struct output *output, pid_t pid, uint64_t time, uint64_t value)
{
	struct hit_mark hit = {.time_ns = BASE + time,
			       .value_ns = value,
			       .sequence = 9,
			       .reason = MT_HIT_DELAY,
			       .pid = pid,
			       .tid = TID,
			       .ip = 0x401000,
			       .function = &main_function};

	trace_writer__hit(output->writer, &hit);
}

static void test_hits_have_a_thread_of_their_own(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;
	const struct read_event *events;

	write_hit(output, PID, 500, 200);
	write_hit(output, PID + 1, 600, 200);
	reader = close_and_read(output);
	events = reader->events.v;
	assert_int_equal(reader->events.n, 4);
	assert_int_equal(events[0].record, 7);
	assert_string_equal(events[0].name, "mtbpf hits");
	assert_int_equal(event__arg(&events[0], "process")->number, PID);
	assert_int_equal(events[1].type, COMPLETE);
	assert_int_equal(events[1].pid, PID);
	assert_int_equal(events[1].tid, events[0].tid);
	assert_true(events[1].tid > 1 << 22);
	assert_string_equal(events[1].name, "hit main");
	assert_int_equal(event__arg(&events[1], "delay_ns")->number, 200);
	assert_int_equal(event__arg(&events[1], "sequence")->number, 9);
	assert_int_equal(event__arg(&events[1], "tid")->number, TID);
	assert_int_equal(event__arg(&events[1], "address")->number, 0x401000);
	assert_int_equal(events[3].pid, PID + 1);
	assert_true(events[3].tid != events[1].tid);
	reader__free(reader);
}

/* Viewers that take the last value at time 0 for 0 would break. */
static void test_no_counter_at_time_0(void **state)
{
	struct trace_counter counter = {.name = "CPU MHz", .of = "cpu", .pid = PID, .tid = TID};
	struct output *output = *state;
	struct fxt_reader *reader;

	for (uint64_t i = 0; i < 3; i++) {
		counter.time_ns = BASE + i;
		trace_writer__counter(output->writer, &counter);
	}
	reader = close_and_read(output);
	assert_int_equal(reader->events.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(reader->events.v[i].type, COUNTER);
		assert_int_equal(reader->events.v[i].time, i < 2 ? 1 : 2);
	}
	reader__free(reader);
}

/* Inside what the hit stopped, which was written just before it; else where the hit was. */
static void test_an_arrow_leads_to_where_it_was(void **state)
{
	static const struct {
		uint64_t time, value, mark;
	} hits[] = {{40, 10, 40}, {120, 60, 99}, {300, 10, 300}};
	const size_t n = sizeof(hits) / sizeof(hits[0]);
	struct call call = {.start_ns = BASE + 10, .end_ns = BASE + 100, .parent = CALL_NO_PARENT};
	struct output *output = *state;
	struct fxt_reader *reader;

	*VEC_PUSH(&output->tree.calls) = call;
	trace_writer__thread(output->writer, &output->tree);
	for (size_t i = 0; i < n; i++)
		write_hit(output, PID, hits[i].time, hits[i].value);
	write_hit(output, PID, 400, 0); /* nothing to begin an arrow in */
	reader = close_and_read_folded(output);
	assert_int_equal(reader->events.n, 3 + 4 * n + 2);
	for (size_t i = 0; i < n; i++) {
		const struct read_event *events = &reader->events.v[3 + 4 * i];

		assert_int_equal(events[0].end, hits[i].time);
		assert_int_equal(events[1].type, INSTANT);
		assert_string_equal(events[1].category, "trigger");
		assert_string_equal(events[1].name, "hit main");
		assert_int_equal(events[1].tid, TID);
		assert_int_equal(events[1].time, hits[i].mark);
		assert_int_equal(events[2].type, 8); /* flow begin, in the hit's slice */
		assert_int_equal(events[2].tid, events[0].tid);
		assert_int_equal(events[2].time, events[0].time);
		assert_int_equal(events[3].type, 10); /* its end, at the mark */
		assert_int_equal(events[3].tid, TID);
		assert_int_equal(events[3].time, hits[i].mark);
	}
	reader__free(reader);
}

/* As far back as it reaches, but not over another one; and inside it where out of order. */
static void test_hits_do_not_overlap(void **state)
{
	static const struct {
		uint64_t time, value, start;
	} hits[] = {
		{500, 200, 300}, {600, 50, 550}, {700, 300, 600},
		{650, 20, 650},	 {800, 10, 790}, {900, 5000, 800},
	};
	const size_t n = sizeof(hits) / sizeof(hits[0]);
	struct output *output = *state;
	struct fxt_reader *reader;

	for (size_t i = 0; i < n; i++)
		write_hit(output, PID, hits[i].time, hits[i].value);
	reader = close_and_read(output);
	assert_int_equal(reader->events.n, n + 1);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(reader->events.v[1 + i].time, hits[i].start);
		assert_int_equal(reader->events.v[1 + i].end, hits[i].time);
	}
	reader__free(reader);
}

static void test_hit_before_the_base(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;

	write_hit(output, PID, (uint64_t)-5, 100);
	write_hit(output, PID, 50, 100);
	reader = close_and_read(output);
	assert_int_equal(reader->events.v[1].time, 0);
	assert_int_equal(reader->events.v[1].end, 0);
	assert_int_equal(reader->events.v[2].time, 0);
	assert_int_equal(reader->events.v[2].end, 50);
	assert_int_equal(output->totals.clamped, 1);
	reader__free(reader);
}

static void test_hit_of_an_unknown_function(void **state)
{
	struct output *output = *state;
	struct hit_mark hit = {
		.time_ns = BASE + 9, .reason = MT_HIT_EVERY, .pid = PID, .ip = 0xabc};
	struct fxt_reader *reader;

	trace_writer__hit(output->writer, &hit);
	reader = close_and_read(output);
	assert_string_equal(reader->events.v[1].name, "hit 0xabc");
	assert_int_equal(reader->events.v[1].time, 9);
	assert_int_equal(reader->events.v[1].end, 9);
	assert_null(event__arg(&reader->events.v[1], "delay_ns"));
	assert_null(event__arg(&reader->events.v[1], "duration_ns"));
	reader__free(reader);
}

static void test_hit_of_a_usdt_probe(void **state)
{
	struct output *output = *state;
	struct hit_mark hit = {.time_ns = BASE + 9,
			       .pid = PID,
			       .function = &main_function,
			       .probe = "usdt:app:request"};
	struct fxt_reader *reader;

	trace_writer__hit(output->writer, &hit);
	reader = close_and_read(output);
	assert_string_equal(reader->events.v[1].name, "hit usdt:app:request");
	reader__free(reader);
}

static void test_what_the_program_gave(void **state)
{
	struct output *output = *state;
	struct hit_mark hit = {.time_ns = BASE + 900,
			       .value_ns = 400,
			       .reason = MT_HIT_MARK,
			       .pid = PID,
			       .n_args = 4,
			       .args_read = 0xd, /* not the second */
			       .args_signed = 0x8,
			       .args = {42, 43, UINT64_MAX, (uint64_t)-5}};
	const struct read_event *event;
	struct fxt_reader *reader;

	trace_writer__hit(output->writer, &hit);
	reader = close_and_read(output);
	event = &reader->events.v[1];
	assert_int_equal(event->time, 500);
	assert_int_equal(event__arg(event, "since_mark_ns")->number, 400);
	assert_int_equal(event__arg(event, "arg1")->number, 42);
	assert_null(event__arg(event, "arg2"));
	assert_true(event__arg(event, "arg3")->number == UINT64_MAX);
	assert_int_equal(event__arg(event, "arg3")->type, 4);
	assert_int_equal((int64_t)event__arg(event, "arg4")->number, -5);
	assert_int_equal(event__arg(event, "arg4")->type, 3);
	reader__free(reader);
}

/* A record has room for 15. */
static void test_as_many_as_there_are(void **state)
{
	struct output *output = *state;
	struct hit_mark hit = {.time_ns = BASE + 900,
			       .reason = MT_HIT_EVERY,
			       .pid = PID,
			       .ip = 1,
			       .n_args = MT_ARGS_MAX,
			       .args_read = 0xfff};
	struct fxt_reader *reader;

	trace_writer__hit(output->writer, &hit);
	hit.reason = MT_HIT_DELAY;
	trace_writer__hit(output->writer, &hit);
	reader = close_and_read(output);
	assert_non_null(event__arg(&reader->events.v[1], "arg12"));
	assert_non_null(event__arg(&reader->events.v[2], "arg11"));
	assert_null(event__arg(&reader->events.v[2], "arg12"));
	reader__free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUTPUT_TEST(test_no_counter_at_time_0),
		OUTPUT_TEST(test_hits_have_a_thread_of_their_own),
		OUTPUT_TEST(test_hits_do_not_overlap),
		OUTPUT_TEST(test_an_arrow_leads_to_where_it_was),
		OUTPUT_TEST(test_hit_before_the_base),
		OUTPUT_TEST(test_hit_of_an_unknown_function),
		OUTPUT_TEST(test_hit_of_a_usdt_probe),
		OUTPUT_TEST(test_what_the_program_gave),
		OUTPUT_TEST(test_as_many_as_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
