/* SPDX-License-Identifier: MIT */
/* A trace file in a folder of its own, to be written and read back. */
#ifndef MTBPF_TESTS_TRACE_FIXTURE_H
#define MTBPF_TESTS_TRACE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "fxt_reader.h"
#include "trace/trace_writer.h"

#define BASE 1000
#define PID  42
#define TID  43

/* What the format calls its events. */
enum { INSTANT, COUNTER, BEGIN, END, COMPLETE };

struct output {
	char folder[40], path[64];
	struct trace_writer *writer;
	struct trace_totals totals;
	struct call_tree tree;
};

static inline int open_output(void **state)
{
	struct trace_options options = {.base_ns = BASE};
	struct output *output = calloc(1, sizeof(*output));

	strcpy(output->folder, "/tmp/test_trace_writer.XXXXXX");
	assert_non_null(mkdtemp(output->folder));
	snprintf(output->path, sizeof(output->path), "%s/t.fxt", output->folder);
	output->writer = trace_writer__open(output->path, &options);
	assert_non_null(output->writer);
	output->tree.pid = PID;
	output->tree.tid = TID;
	strcpy(output->tree.comm, "worker");
	*state = output;
	return 0;
}

static inline int remove_output(void **state)
{
	struct output *output = *state;

	VEC_FINI(&output->tree.calls);
	unlink(output->path);
	assert_int_equal(rmdir(output->folder), 0);
	free(output);
	return 0;
}

/* Slices in one record as a begin and an end: hits have no other form. */
static inline void unfold(struct fxt_reader *reader)
{
	size_t n = reader->events.n, at = 0;
	struct read_event *folded = reader->events.v;

	reader->events.v = calloc(2 * n + 1, sizeof(*folded));
	for (size_t i = 0; i < n; i++) {
		struct read_event *event = &reader->events.v[at++], *end = event + 1;

		*event = folded[i];
		if (event->record != 4 || event->type != COMPLETE ||
		    !strcmp(event->category, "hit"))
			continue;
		event->type = BEGIN;
		*end = (struct read_event){.record = 4,
					   .type = END,
					   .time = event->end,
					   .pid = event->pid,
					   .tid = event->tid,
					   .name = strdup("")};
		at++;
	}
	reader->events.n = at;
	reader->events.cap = 2 * n + 1;
	free(folded);
}

/* As it lies in the file. */
static inline struct fxt_reader *close_and_read_folded(struct output *output)
{
	assert_int_equal(trace_writer__close(output->writer, &output->totals), 0);
	return reader__open(output->path);
}

static inline struct fxt_reader *close_and_read(struct output *output)
{
	struct fxt_reader *reader = close_and_read_folded(output);

	unfold(reader);
	return reader;
}

#define OUTPUT_TEST(test) cmocka_unit_test_setup_teardown(test, open_output, remove_output)

#endif
