// SPDX-License-Identifier: MIT
/* What a slice says about itself. */
#include "slices_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/slice.h"

static const struct function libc_function = {.name = "write", .module = "libc.so.6"};

static void test_arguments_of_a_call(void **state)
{
	struct output *output = *state;
	const struct read_event *event;
	struct fxt_reader *reader;
	struct call *call = add_call(output, 0, 0, 100);

	call->entry_ip = 0x401000;
	call->call_ip = 0x402000;
	call->self_insns = 77;
	call->flags = CALL_INFERRED_START | CALL_INFERRED_END | CALL_BY_JUMP | CALL_CUT_SHORT;
	reader = write_tree(output);
	event = &reader->events.v[1];
	assert_string_equal(event->name, "main");
	assert_string_equal(event->category, "user");
	assert_int_equal(event->n_args, 10);
	assert_int_equal(event__arg(event, "address")->type, 7);
	assert_int_equal(event__arg(event, "address")->number, 0x401000);
	assert_string_equal(event__arg(event, "module")->string, "prog");
	assert_string_equal(event__arg(event, "file")->string, "/src/main.c");
	assert_int_equal(event__arg(event, "line")->number, 12);
	assert_int_equal(event__arg(event, "call_ip")->type, 7);
	assert_int_equal(event__arg(event, "call_ip")->number, 0x402000);
	assert_int_equal(event__arg(event, "insns")->number, 77);
	assert_string_equal(event__arg(event, "inferred_start")->string, "true");
	assert_string_equal(event__arg(event, "inferred_end")->string, "true");
	assert_string_equal(event__arg(event, "by_jump")->string, "true");
	assert_string_equal(event__arg(event, "cut_short")->string, "true");
	reader__free(reader);
}

/* The line of a call is its site's; of one that is not known nothing is said. */
static void test_where_it_was_called(void **state)
{
	struct output *output = *state;
	struct call_sites *sites = &output->tree.sites;
	const struct read_event *event;
	struct fxt_reader *reader;

	sites->n_places = 8;
	sites->places = calloc(8, sizeof(*sites->places));
	sites->n_known = 2;
	for (unsigned int i = 0; i < 2; i++) {
		struct site_place *place = call_sites__place(sites, 0x402000 + i);

		*place = (struct site_place){0x402000 + i, calloc(1, sizeof(*place->site))};
		place->site->source = (struct source_place){i ? "/src/b.c" : "/src/a.c", 7 + i};
	}
	for (unsigned int i = 0; i < 6; i++)
		add_call(output, 0, 10 * i, 10 * i + 5)->call_ip = 0x402000 + i % 3;
	reader = write_tree(output);
	for (unsigned int i = 0; i < 6; i++) {
		event = &reader->events.v[1 + 2 * i];
		assert_int_equal(event__arg(event, "call_ip")->number, 0x402000 + i % 3);
		assert_string_equal(event__arg(event, "file")->string, "/src/main.c");
		if (i % 3 == 2) {
			assert_null(event__arg(event, "call_file"));
			assert_null(event__arg(event, "call_line"));
			continue;
		}
		assert_string_equal(event__arg(event, "call_file")->string,
				    i % 3 ? "/src/b.c" : "/src/a.c");
		assert_int_equal(event__arg(event, "call_line")->number, 7 + i % 3);
	}
	reader__free(reader);
	for (unsigned int i = 0; i < 8; i++)
		free(sites->places[i].site);
	free(sites->places);
}

/* Neither instructions nor the address of a call are an inlined function's own. */
static void test_inlined_functions(void **state)
{
	static const struct function function = {
		.name = "helper", .module = "libx.so", .kind = FUNCTION_INLINED};
	static const struct inlined sites[] = {
		{.function = &function, .call = {"/src/x.c", 70}},
		{.function = &function, .call = {"/src/x.c", 71}},
		{.function = &function},
	};
	struct output *output = *state;
	struct fxt_reader *reader;

	for (unsigned int i = 0; i < 3; i++) {
		struct call *call = add_call(output, 0, 10 * i, 10 * i + 5);

		call->kind = CALL_INLINED;
		call->function = &function;
		call->inlined = &sites[i];
		call->entry_ip = 0x401000 + i;
		call->flags = CALL_INFERRED_START | CALL_INFERRED_END;
	}
	reader = write_tree(output);
	for (unsigned int i = 0; i < 3; i++) {
		const struct read_event *event = &reader->events.v[1 + 2 * i];

		assert_string_equal(event->name, "helper");
		assert_string_equal(event->category, "inlined");
		assert_int_equal(event__arg(event, "address")->number, 0x401000 + i);
		assert_null(event__arg(event, "call_ip"));
		assert_null(event__arg(event, "insns"));
		assert_string_equal(event__arg(event, "inferred_start")->string, "true");
		if (i < 2) {
			assert_string_equal(event__arg(event, "call_file")->string, "/src/x.c");
			assert_int_equal(event__arg(event, "call_line")->number, 70 + i);
		} else {
			assert_null(event__arg(event, "call_file"));
		}
	}
	reader__free(reader);
}

/* Slices of one function, each with numbers of its own, and with what only some have. */
static void test_calls_of_one_function(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;
	const unsigned int n = 24;

	for (unsigned int i = 0; i < n; i++) {
		struct call *call = add_call(output, 0, 10 * i, 10 * i + 5);

		call->entry_ip = 0x401000 + i;
		call->call_ip = i % 2 ? 0 : 0x402000 + i;
		call->flags = i % 3 ? CALL_INSIDE : 0;
		call->self_insns = i % 4 ? i : 0x100000000 + i;
	}
	reader = write_tree(output);
	assert_int_equal(reader->events.n, 2 * n + 1);
	for (unsigned int i = 0; i < n; i++) {
		const struct read_event *event = &reader->events.v[1 + 2 * i];
		const struct read_arg *arg = event__arg(event, "insns");

		assert_int_equal(arg->number, i % 4 ? i : 0x100000000 + i);
		arg = event__arg(event, "call_ip");
		assert_int_equal(arg ? arg->number : 0, i % 2 ? 0 : 0x402000 + i);
		arg = event__arg(event, "address");
		assert_int_equal(arg ? arg->number : 0, i % 3 ? 0x401000 + i : 0);
		assert_string_equal(event__arg(event, "module")->string, "prog");
		assert_int_equal(event__arg(event, "line")->number, 12);
		assert_string_equal(event->name, "main");
	}
	reader__free(reader);
}

/* Which function it is, and where it began, its name does not tell. */
static void test_an_address_where_the_name_does_not_tell_it(void **state)
{
	static const struct function stub = {
		.name = "[plt]", .module = "prog", .kind = FUNCTION_PLT};
	static const struct {
		const struct function *function;
		uint8_t flags;
		bool shown;
	} cases[] = {
		{&main_function, 0, false},
		{&main_function, CALL_BY_JUMP, false},
		{&main_function, CALL_INSIDE, true},
		{&main_function, CALL_INFERRED_START, true},
		{&stub, 0, true},
		{NULL, 0, true},
	};
	const size_t n = sizeof(cases) / sizeof(cases[0]);
	struct output *output = *state;
	struct fxt_reader *reader;

	for (size_t i = 0; i < n; i++) {
		struct call *call = add_call(output, 0, 10 * i, 10 * i + 5);

		call->function = cases[i].function;
		call->flags = cases[i].flags;
		call->entry_ip = 0x401000;
	}
	reader = write_tree(output);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(!!event__arg(&reader->events.v[1 + 2 * i], "address"),
				 cases[i].shown);
	reader__free(reader);
}

/* More than the string table takes: what was encoded before is encoded anew. */
static void test_more_functions_than_strings(void **state)
{
	const unsigned int n = 40000;
	struct output *output = *state;
	struct function *functions = calloc(n, sizeof(*functions));
	struct fxt_reader *reader;
	char name[32];

	for (unsigned int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "function %u", i);
		functions[i] = (struct function){.name = strdup(name), .module = "prog"};
	}
	for (unsigned int i = 0; i < 2 * n; i++)
		add_call(output, 0, i, i)->function =
			i % 2 ? &functions[i % 16] : &functions[i / 2];
	reader = write_tree(output);
	for (unsigned int i = 0; i < 2 * n; i++) {
		const struct read_event *event = &reader->events.v[1 + 2 * i];

		assert_string_equal(event->name, output->tree.calls.v[i].function->name);
		assert_string_equal(event__arg(event, "module")->string, "prog");
	}
	for (unsigned int i = 0; i < n; i++)
		free((char *)(uintptr_t)functions[i].name);
	free(functions);
	reader__free(reader);
}

/* Alike in all but that: each says its own. */
static void test_what_a_call_was_left_by(void **state)
{
	static const char *const expected[] = {NULL,	  "throw",	"panic", "raise",
					       "longjmp", "siglongjmp", "goexit"};
	struct output *output = *state;
	struct fxt_reader *reader;

	for (unsigned int i = 0; i <= LEFT_BY_GOEXIT; i++) {
		struct call *call = add_call(output, 0, 10 * i, 10 * i + 5);

		call->flags = CALL_CUT_SHORT;
		call->left_by = i;
	}
	reader = write_tree(output);
	for (unsigned int i = 0; i <= LEFT_BY_GOEXIT; i++) {
		const struct read_arg *arg = event__arg(&reader->events.v[1 + 2 * i], "left_by");

		assert_true(!arg == !expected[i]);
		if (arg)
			assert_string_equal(arg->string, expected[i]);
	}
	reader__free(reader);
}

static void test_what_is_unknown_is_left_out(void **state)
{
	struct output *output = *state;
	const struct read_event *event;
	struct fxt_reader *reader;

	add_call(output, 0, 0, 100)->function = &libc_function;
	reader = write_tree(output);
	event = &reader->events.v[1];
	assert_string_equal(event->category, "library");
	assert_int_equal(event->n_args, 2);
	assert_string_equal(event__arg(event, "module")->string, "libc.so.6");
	assert_int_equal(event__arg(event, "insns")->number, 0);
	reader__free(reader);
}

/* Off the CPU from 10 to 20, in the first call. */
static void add_off_cpu(struct output *output)
{
	*add_call(output, 1, 10, 20) = (struct call){.start_ns = BASE + 10,
						     .end_ns = BASE + 20,
						     .depth = 1,
						     .kind = CALL_OFF_CPU,
						     .flags = CALL_SAMPLED};
}

/* Two threads of one name are one program's doing; of more names than there is room for the first
 * are told. */
static void test_several_who_had_its_cpu(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;
	const struct read_event *event;

	add_call(output, 0, 0, 100);
	add_off_cpu(output);
	*VEC_PUSH(&output->tree.done_by) =
		(struct done_by){.call = 1, .pid = 7, .tid = 8, .comm = "hog", .ns = 4};
	*VEC_PUSH(&output->tree.done_by) =
		(struct done_by){.call = 1, .pid = 9, .tid = 9, .comm = "cc1", .ns = 3};
	*VEC_PUSH(&output->tree.done_by) =
		(struct done_by){.call = 1, .pid = 7, .tid = 10, .comm = "hog", .ns = 2};
	for (int i = 0; i < SLICE_BY_MAX; i++) {
		*VEC_PUSH(&output->tree.done_by) = (struct done_by){
			.call = 1, .pid = 20 + i, .tid = 20 + i, .comm = "", .ns = 0};
		output->tree.done_by.v[3 + i].comm[0] = (char)('a' + i);
	}
	reader = write_tree(output);
	VEC_FINI(&output->tree.done_by);
	event = &reader->events.v[2];
	assert_string_equal(event__arg(event, "by")->string, "hog (process 7, thread 8)");
	assert_int_equal(event__arg(event, "by_ns")->number, 6);
	assert_string_equal(event__arg(event, "by_2")->string, "cc1 (process 9, thread 9)");
	assert_int_equal(event__arg(event, "by_2_ns")->number, 3);
	assert_string_equal(event__arg(event, "by_5")->string, "c (process 22, thread 22)");
	assert_int_equal(event__arg(event, "by_5_ns")->number, 0);
	reader__free(reader);
}

static void add_goroutine(struct output *output, const char *comm, const char *in)
{
	struct done_by *by = VEC_PUSH(&output->tree.done_by);

	*by = (struct done_by){
		.call = 1, .pid = 7, .tid = 8, .ns = 5, .is_goroutine = true, .in = in};
	snprintf(by->comm, sizeof(by->comm), "%s", comm);
}

/* One does it in two functions. */
static void test_goroutines_that_made_it_ready(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;
	const struct read_event *event;

	add_call(output, 0, 0, 100);
	add_off_cpu(output);
	add_goroutine(output, "goroutine 18", "main.f");
	add_goroutine(output, "goroutine 18", "main.g");
	add_goroutine(output, "goroutine 18", "main.f");
	add_goroutine(output, "Go's runtime", NULL);
	reader = write_tree(output);
	VEC_FINI(&output->tree.done_by);
	event = &reader->events.v[2];
	assert_string_equal(event__arg(event, "by")->string,
			    "goroutine 18 (process 7, thread 8, in main.f)");
	assert_int_equal(event__arg(event, "by_ns")->number, 10);
	assert_string_equal(event__arg(event, "by_2")->string,
			    "goroutine 18 (process 7, thread 8, in main.g)");
	assert_string_equal(event__arg(event, "by_3")->string,
			    "Go's runtime (process 7, thread 8, in code that is not known)");
	assert_null(event__arg(event, "by_4"));
	reader__free(reader);
}

/* Nobody counted instructions. */
static void test_a_call_that_was_sampled(void **state)
{
	struct output *output = *state;
	struct fxt_reader *reader;

	add_call(output, 0, 0, 100)->flags = CALL_SAMPLED | CALL_INFERRED_END;
	add_off_cpu(output);
	*VEC_PUSH(&output->tree.done_by) =
		(struct done_by){.call = 1, .pid = 7, .tid = 8, .comm = "holder", .ns = 10};
	reader = write_tree(output);
	VEC_FINI(&output->tree.done_by);
	assert_null(event__arg(&reader->events.v[1], "insns"));
	assert_string_equal(event__arg(&reader->events.v[1], "sampled")->string, "true");
	assert_string_equal(event__arg(&reader->events.v[1], "inferred_end")->string, "true");
	assert_string_equal(reader->events.v[2].name, "[blocked]");
	assert_string_equal(reader->events.v[2].category, "off-cpu");
	assert_string_equal(event__arg(&reader->events.v[2], "by")->string,
			    "holder (process 7, thread 8)");
	assert_null(event__arg(&reader->events.v[2], "by_ns"));
	reader__free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUTPUT_TEST(test_arguments_of_a_call),
		OUTPUT_TEST(test_where_it_was_called),
		OUTPUT_TEST(test_inlined_functions),
		OUTPUT_TEST(test_calls_of_one_function),
		OUTPUT_TEST(test_an_address_where_the_name_does_not_tell_it),
		OUTPUT_TEST(test_more_functions_than_strings),
		OUTPUT_TEST(test_what_a_call_was_left_by),
		OUTPUT_TEST(test_what_is_unknown_is_left_out),
		OUTPUT_TEST(test_a_call_that_was_sampled),
		OUTPUT_TEST(test_several_who_had_its_cpu),
		OUTPUT_TEST(test_goroutines_that_made_it_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
