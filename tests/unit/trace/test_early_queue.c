// SPDX-License-Identifier: MIT
/* What a thread writes of calls is what its caller would have written. */
#include "slices_fixture.h"

#include "pipeline/early_calls.h"

/* More than lie in the queue at once. */
#define MANY 40000
#define FEW  5

#define DEPTH 20

static const struct call_site sites[] = {{.source = {"/src/a.c", 5}}, {.source = {"/src/b.c", 6}}};

/* A call and what it called, deep down; each second one is the caller of the one before. */
struct told {
	struct call calls[3];
	const struct call_site *sites[3];
	size_t n;
	struct early_owner owner;
};

static struct told told_of(size_t i)
{
	struct told told = {.n = 1 + i % 3, .owner = {PID, TID + (pid_t)(i / 9000), BASE}};
	uint64_t start = BASE + 100 + 20 * (i / 2) - 2 * (i % 2);
	uint32_t depth = DEPTH - i % 2;

	for (size_t k = 0; k < told.n; k++) {
		told.calls[k] = (struct call){.start_ns = start + k,
					      .end_ns = start + 9 + 4 * (i % 2) - k,
					      .depth = depth + (uint32_t)k,
					      .call_ip = 0x1000 + i % 7,
					      .function = &main_function};
		told.sites[k] = i % 4 == 3 ? NULL : &sites[(i + k) % 2];
	}
	return told;
}

static void queue_all(struct output *output, size_t n)
{
	struct early_queue *queue = early_queue__new(output->writer);

	assert_non_null(queue);
	for (size_t i = 0; i < n; i++) {
		struct told told = told_of(i);

		early_queue__begin(queue, &told.owner);
		for (size_t k = 0; k < told.n; k++) {
			struct call *call = early_queue__add(queue, told.sites[k]);

			assert_non_null(call);
			*call = told.calls[k];
			call->depth = (uint32_t)k;
		}
	}
	early_queue__finish(queue);
	early_queue__finish(queue);
	early_queue__free(queue);
}

static void write_all(struct output *output, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct told told = told_of(i);
		struct call_tree tree = {.pid = told.owner.pid, .tid = told.owner.tid};

		tree.calls.v = told.calls;
		tree.calls.n = told.n;
		for (size_t k = 0; k < told.n; k++)
			told.calls[k].depth = (uint32_t)k;
		trace_writer__calls(output->writer, &tree, told.sites);
	}
}

static char *bytes_of(struct output *output, size_t *n)
{
	FILE *file;
	char *bytes;

	assert_int_equal(trace_writer__close(output->writer, &output->totals), 0);
	bytes = malloc(output->totals.bytes);
	file = fopen(output->path, "r");
	assert_non_null(bytes);
	assert_non_null(file);
	*n = fread(bytes, 1, output->totals.bytes, file);
	assert_int_equal(*n, output->totals.bytes);
	fclose(file);
	return bytes;
}

static void expect_the_same(struct output *queued, size_t n)
{
	struct output *direct;
	char *a, *b;
	size_t a_size, b_size;

	assert_int_equal(open_output((void **)&direct), 0);
	queue_all(queued, n);
	write_all(direct, n);
	a = bytes_of(queued, &a_size);
	b = bytes_of(direct, &b_size);
	assert_true(queued->totals.slices >= n);
	assert_int_equal(queued->totals.slices, direct->totals.slices);
	assert_int_equal(a_size, b_size);
	assert_memory_equal(a, b, a_size);
	free(a);
	free(b);
	remove_output((void **)&direct);
}

static void test_more_than_it_holds(void **state)
{
	expect_the_same(*state, MANY);
}

static void test_no_more_than_a_batch(void **state)
{
	expect_the_same(*state, FEW);
}

static void test_where_it_was_called_from(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;

	queue_all(output, 4);
	reader = close_and_read_folded(output);
	assert_string_equal(event__arg(&reader->events.v[0], "call_file")->string, "/src/a.c");
	assert_null(event__arg(&reader->events.v[reader->events.n - 1], "call_file"));
	reader__free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUTPUT_TEST(test_more_than_it_holds),
		OUTPUT_TEST(test_no_more_than_a_batch),
		OUTPUT_TEST(test_where_it_was_called_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
