/* SPDX-License-Identifier: MIT */
/* A thread in a file of C++: functions with landing pads, and those that throw. */
#ifndef MTBPF_TESTS_STACK_THROW_FIXTURE_H
#define MTBPF_TESTS_STACK_THROW_FIXTURE_H

#include "eh_image.h"
#include "stack_fixture.h"
#include "util/cleanup.h"

/* Where a file is mapped whose functions these are. */
#define BASE 0x400000

enum {
	OUTER = BASE + 0x1000,
	F = BASE + 0x1100,
	MIDDLE = BASE + 0x1200, /* has no table */
	THROW = BASE + 0x1300,
	RAISE = BASE + 0x1400,
	RESUME = BASE + 0x1500,
	PANIC = BASE + 0x1600,
	ON_SIGNAL = BASE + 0x1700,
	SETJMP = BASE + 0x1800,
	LONGJMP = BASE + 0x1900,
	PHASE_2 = BASE + 0x1a00, /* of _Unwind_RaiseException() */
	STATE_FOR = BASE + 0x1b00,
	FIND_FDE = BASE + 0x1c00,
};

/* Calls in F, by what an exception out of them does. */
enum {
	CALL_1 = F + 0x10,	 /* comes to PAD_1 */
	CALL_2 = F + 0x20,	 /* comes to PAD_2 */
	CALL_THROUGH = F + 0x30, /* goes through */
	CALL_LAST = F + 0x7b,	 /* goes through; PAD_1 lies behind it */
	PAD_1 = F + 0x80,
	PAD_2 = F + 0x90,
	DIRECT_JUMP = F + 0xa0,
	/* And in OUTER. */
	OUTER_CALL = OUTER + 0x10,
	OUTER_PAD = OUTER + 0x80,
};

static const struct eh_function functions[] = {
	{"outer", 0x1000, 0x100, {{0x10, 5, 0x80}}},
	{"f", 0x1100, 0x100, {{0x10, 5, 0x80}, {0x20, 5, 0x90}, {0x60, 1, 0x80}}},
	{"middle", 0x1200, 0x100, {{0}}},
	{"__cxa_throw", 0x1300, 0x100, {{0}}},
	{"_Unwind_RaiseException", 0x1400, 0x100, {{0}}},
	{"_Unwind_Resume", 0x1500, 0x100, {{0}}},
	{"rust_panic", 0x1600, 0x100, {{0}}},
	{"on_signal", 0x1700, 0x100, {{0}}},
	{"_setjmp", 0x1800, 0x100, {{0}}},
	{"longjmp", 0x1900, 0x100, {{0}}},
	{"phase_2", 0x1a00, 0x100, {{0}}},
	{"state_for", 0x1b00, 0x100, {{0}}},
	{"_Unwind_Find_FDE", 0x1c00, 0x100, {{0}}},
};

static inline int start_throwing(void **state)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct thread *t = calloc(1, sizeof(*t));

	bytes = eh_image__bytes(functions, sizeof(functions) / sizeof(functions[0]),
				&(struct eh_style){0});
	bytes[DIRECT_JUMP - BASE] = 0xe9;
	t->n_images = 1;
	t->images[0] = elf_image__from_bytes(bytes, EH_SIZE, "throws");
	t->map = code_map__new();
	assert_int_equal(code_map__add(t->map, BASE, EH_SIZE, 0, t->images[0]), 0);
	t->stack = stack__new(42, 43, "worker", t->map);
	*state = t;
	return 0;
}

/* `from` calls __cxa_throw(), which looks for a frame to land in. */
static inline void throw_from(struct thread *t, uint64_t from)
{
	call(t, from, THROW);
	call(t, THROW + 0x10, RAISE);
}

/* Ends the thread, which runs at `at`, and checks its calls and its unwinds: "FROM TO WHAT
 * START-END". */
static inline void expect(struct thread *t, uint64_t at, const char *calls, const char *unwinds)
{
	struct call_tree tree;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	interrupt(t, at);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_tree(&tree, calls);
	for (size_t i = 0; i < tree.unwinds.n; i++) {
		const struct unwind *unwind = &tree.unwinds.v[i];

		fprintf(out, "%s@%" PRIu64 " %s@%" PRIu64 " %s %" PRIu64 "-%" PRIu64 "\n",
			call__name(&tree.calls.v[unwind->from]),
			tree.calls.v[unwind->from].start_ns, call__name(&tree.calls.v[unwind->to]),
			tree.calls.v[unwind->to].start_ns, left_by__name(unwind->left_by),
			unwind->start_ns, unwind->end_ns);
	}
	fclose(out);
	assert_string_equal(text, unwinds);
	free(text);
	call_tree__fini(&tree);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_throwing, end_thread)

#endif
