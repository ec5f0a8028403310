// SPDX-License-Identifier: MIT
/* Unwinds in a trace file: where they stand among the slices. */
#include "trace_fixture.h"

#include "trace/timeline.h"

static const struct function function = {.name = "f", .module = "prog", .vaddr = 0x10};
static const struct function thrower = {.name = "__cxa_throw", .module = "prog", .vaddr = 0x20};

enum { FLOW_BEGIN = 8, FLOW_END = 10 };

/* Instead of user/target's, which needs an ELF file. */
bool function__source(const struct function *of, struct source_place *place)
{
	return false;
}

static uint32_t add_call(struct output *output, uint32_t depth, uint64_t start, uint64_t end)
{
	uint32_t n = (uint32_t)output->tree.calls.n, parent = n;
	struct call *call = VEC_PUSH(&output->tree.calls);

	while (parent > 0 && output->tree.calls.v[parent - 1].depth >= depth)
		parent--;
	*call = (struct call){.start_ns = BASE + start,
			      .end_ns = BASE + end,
			      .depth = depth,
			      .parent = parent ? parent - 1 : CALL_NO_PARENT,
			      .function = &function};
	return n;
}

static void add_unwind(struct output *output, uint32_t from, uint32_t to, uint64_t start,
		       uint64_t end)
{
	struct unwind *unwind = VEC_PUSH(&output->tree.unwinds);

	*unwind = (struct unwind){.start_ns = BASE + start,
				  .end_ns = BASE + end,
				  .from = from,
				  .to = to,
				  .left_by = LEFT_BY_THROW};
}

/* "begin 0", "instant 20 throw", "flow 20 1", "arrow 40 1": a line an event behind the names. */
static void expect(struct output *output, const char *expected)
{
	struct fxt_reader *reader;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	trace_writer__thread(output->writer, &output->tree);
	reader = close_and_read(output);
	for (size_t i = 0; i < reader->events.n; i++) {
		const struct read_event *event = &reader->events.v[i];

		assert_int_not_equal(event->record, 0);
		if (event->record != 4)
			continue;
		if (event->type == BEGIN || event->type == END)
			fprintf(out, "%s %lu\n", event->type == BEGIN ? "begin" : "end",
				event->time);
		else if (event->type == INSTANT)
			fprintf(out, "%s %lu\n", event->name, event->time);
		else
			fprintf(out, "%s %lu #%lu\n", event->type == FLOW_BEGIN ? "from" : "to",
				event->time, event->end);
	}
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	reader__free(reader);
	VEC_FINI(&output->tree.unwinds);
}

static void test_a_unwind(void **state)
{
	struct output *output = *state;

	add_call(output, 0, 0, 100);
	add_call(output, 1, 10, 50);
	add_call(output, 2, 20, 50);
	add_call(output, 3, 30, 40);
	add_call(output, 1, 50, 60);
	add_unwind(output, 2, 0, 20, 50);
	expect(output, "begin 0\nbegin 10\nbegin 20\nfrom 20 #1\nthrow 20\nbegin 30\nend 40\n"
		       "end 50\nend 50\ncaught 50\nto 50 #1\nbegin 50\nend 60\nend 100\n");
}

/* A clean-up's own lies within the one that goes on behind it. */
static void test_one_within_another(void **state)
{
	struct output *output = *state;

	add_call(output, 0, 0, 100);
	add_call(output, 1, 10, 80);
	add_call(output, 2, 20, 30);
	add_call(output, 2, 40, 70);
	add_call(output, 3, 50, 60);
	add_unwind(output, 2, 0, 20, 80);
	add_unwind(output, 4, 3, 50, 60);
	expect(output, "begin 0\nbegin 10\nbegin 20\nfrom 20 #1\nthrow 20\nend 30\nbegin 40\n"
		       "begin 50\nfrom 50 #2\nthrow 50\nend 60\ncaught 60\nto 60 #2\nend 70\n"
		       "end 80\ncaught 80\nto 80 #1\nend 100\n");
}

/* Of what it landed in no more is known: there is no arrow to nowhere. */
static void test_to_another_tree(void **state)
{
	struct output *output = *state;

	add_call(output, 0, 0, 30);
	add_call(output, 1, 10, 30);
	add_call(output, 0, 30, 60);
	add_unwind(output, 1, 2, 10, 30);
	expect(output, "begin 0\nbegin 10\nthrow 10\nend 30\nend 30\nbegin 30\nend 60\n");
}

static void test_trees_share_no_ids(void **state)
{
	struct output *output = *state;

	add_call(output, 0, 0, 100);
	add_call(output, 1, 10, 20);
	add_unwind(output, 1, 0, 10, 20);
	trace_writer__thread(output->writer, &output->tree);
	expect(output, "begin 0\nbegin 10\nfrom 10 #1\nthrow 10\nend 20\ncaught 20\nto 20 #1\n"
		       "end 100\n"
		       "begin 0\nbegin 10\nfrom 10 #2\nthrow 10\nend 20\ncaught 20\nto 20 #2\n"
		       "end 100\n");
}

/* What is left out, or has no room for an instant on it, begins no arrow. */
static void test_too_deep(void **state)
{
	struct output *output = *state;
	const uint32_t deep = TIMELINE_MAX_DEPTH + 4;
	struct fxt_reader *reader;
	unsigned int flows = 0;

	for (uint32_t i = 0; i < deep; i++)
		add_call(output, i, i, 5000 - i);
	add_unwind(output, TIMELINE_MAX_DEPTH - 2, 0, 510, 4999);
	add_unwind(output, TIMELINE_MAX_DEPTH - 1, 1, 511, 4998);
	add_unwind(output, TIMELINE_MAX_DEPTH + 1, 1, 513, 4998);
	trace_writer__thread(output->writer, &output->tree);
	reader = close_and_read(output);
	for (size_t i = 0; i < reader->events.n; i++)
		flows += reader->events.v[i].record == 4 && reader->events.v[i].type >= FLOW_BEGIN;
	assert_int_equal(flows, 2);
	reader__free(reader);
	VEC_FINI(&output->tree.unwinds);
}

static void test_what_it_says(void **state)
{
	struct output *output = *state;
	static const struct function other = {.name = "parse", .module = "prog", .vaddr = 0x30};
	struct fxt_reader *reader;
	unsigned int found = 0;

	add_call(output, 0, 0, 100);
	output->tree.calls.v[add_call(output, 1, 10, 50)].function = &other;
	output->tree.calls.v[add_call(output, 2, 20, 50)].function = &thrower;
	add_unwind(output, 2, 0, 20, 50);
	output->tree.unwinds.v[0].left_by = LEFT_BY_LONGJMP;
	trace_writer__thread(output->writer, &output->tree);
	reader = close_and_read(output);
	for (size_t i = 0; i < reader->events.n; i++) {
		const struct read_event *event = &reader->events.v[i];

		if (event->record != 4 || event->type != INSTANT)
			continue;
		assert_string_equal(event->name, found++ ? "landed" : "longjmp");
		assert_string_equal(event->category, "leap");
		assert_string_equal(event__arg(event, "from")->string, "parse");
		assert_string_equal(event__arg(event, "to")->string, "f");
	}
	assert_int_equal(found, 2);
	reader__free(reader);
	VEC_FINI(&output->tree.unwinds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUTPUT_TEST(test_a_unwind),	   OUTPUT_TEST(test_one_within_another),
		OUTPUT_TEST(test_to_another_tree), OUTPUT_TEST(test_trees_share_no_ids),
		OUTPUT_TEST(test_too_deep),	   OUTPUT_TEST(test_what_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
