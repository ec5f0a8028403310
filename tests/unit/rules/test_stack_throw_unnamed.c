// SPDX-License-Identifier: MIT
/* Exceptions in programs without symbols: what began them, and of what language they are. */
#include "eh_image.h"
#include "stack_fixture.h"
#include "util/cleanup.h"

#define BASE 0x400000

enum {
	OUTER = BASE + 0x1000,
	F = BASE + 0x1100,
	THROW = BASE + 0x1200,
	UNWINDER = BASE + 0x1300,
	RESUME = BASE + 0x1400,
	OUTER_CALL = OUTER + 0x10,
	OUTER_PAD = OUTER + 0x80,
	F_CALL = F + 0x10,
	F_PAD = F + 0x80,
};

static const struct eh_function functions[] = {
	{NULL, 0x1000, 0x100, {{0x10, 5, 0x80}}},
	{NULL, 0x1100, 0x100, {{0x10, 5, 0x80}}},
	{NULL, 0x1200, 0x100, {{0}}},
	{NULL, 0x1300, 0x100, {{0}}},
	{NULL, 0x1400, 0x100, {{0}}},
};

/* The same, whose unwinder is a library's, which exports its names. */
static const struct eh_function dynamic_functions[] = {
	{NULL, 0x1000, 0x100, {{0x10, 5, 0x80}}},
	{NULL, 0x1100, 0x100, {{0x10, 5, 0x80}}},
	{NULL, 0x1200, 0x100, {{0}}},
	{"_Unwind_RaiseException", 0x1300, 0x100, {{0}}},
	{"_Unwind_Resume", 0x1400, 0x100, {{0}}},
};

/* C++, whose names are there, beside Rust. */
static const struct eh_function cxx_functions[] = {
	{NULL, 0x1000, 0x100, {{0x10, 5, 0x80}}}, {"f()", 0x1100, 0x100, {{0x10, 5, 0x80}}},
	{"__cxa_throw", 0x1200, 0x100, {{0}}},	  {"_Unwind_RaiseException", 0x1300, 0x100, {{0}}},
	{"_Unwind_Resume", 0x1400, 0x100, {{0}}},
};

static int start(void **state, const struct eh_function *all, struct eh_style style)
{
	_cleanup_free_ uint8_t *bytes =
		eh_image__bytes(all, sizeof(functions) / sizeof(functions[0]), &style);
	struct thread *t = calloc(1, sizeof(*t));

	t->n_images = 1;
	t->images[0] = elf_image__from_bytes(bytes, EH_SIZE, "x");
	t->map = code_map__new();
	assert_int_equal(code_map__add(t->map, BASE, EH_SIZE, 0, t->images[0]), 0);
	t->stack = stack__new(42, 43, "worker", t->map);
	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	*state = t;
	return 0;
}

static int start_cxx(void **state)
{
	return start(state, functions, (struct eh_style){.comment = "GCC: (Debian 12.2.0) 12.2.0"});
}

static int start_rust(void **state)
{
	return start(state, functions,
		     (struct eh_style){.comment = "GCC: (Debian) 12.2.0\nrustc version 1.80.0"});
}

/* Whose compiler did not name itself yet. */
static int start_old_rust(void **state)
{
	return start(state, functions,
		     (struct eh_style){.comment = "x/rustc/1/library/std/src/panicking.rs",
				       .is_rodata = true});
}

static int start_dynamic_cxx(void **state)
{
	return start(state, dynamic_functions, (struct eh_style){0});
}

static int start_dynamic_rust(void **state)
{
	return start(state, dynamic_functions,
		     (struct eh_style){.comment = "rustc version 1.80.0"});
}

static int start_mixed(void **state)
{
	return start(state, cxx_functions, (struct eh_style){.comment = "rustc version 1.80.0"});
}

static void throw_from(struct thread *t, uint64_t from)
{
	call(t, from, THROW);
	call(t, THROW + 0x10, UNWINDER);
}

/* Ends the thread, and checks its calls and its unwinds: "START TO WHAT". */
static void expect(struct thread *t, const char *calls, const char *unwinds)
{
	char text[256] = "";
	struct call_tree tree;

	interrupt(t, OUTER_PAD);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_tree(&tree, calls);
	for (size_t i = 0; i < tree.unwinds.n; i++) {
		const struct unwind *unwind = &tree.unwinds.v[i];

		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%" PRIu64 " %" PRIu64 " %s\n", tree.calls.v[unwind->from].start_ns,
			 tree.calls.v[unwind->to].start_ns, left_by__name(unwind->left_by));
	}
	assert_string_equal(text, unwinds);
	call_tree__fini(&tree);
}

/* What called the unwinder began it. */
static void throw_out(struct thread *t)
{
	throw_from(t, F + 0x40);
	jump(t, UNWINDER + 0x80, OUTER_PAD);
}

static void test_a_throw(void **state)
{
	throw_out(*state);
	expect(*state,
	       "[x+0x1000] 10-60 inferred-start inferred-end\n"
	       "  [x+0x1100] 20-50 cut by-throw\n"
	       "    [x+0x1200] 30-50 cut by-throw\n"
	       "      [x+0x1300] 40-50 cut by-throw\n",
	       "30 10 throw\n");
}

static void test_a_panic(void **state)
{
	throw_out(*state);
	expect(*state,
	       "[x+0x1000] 10-60 inferred-start inferred-end\n"
	       "  [x+0x1100] 20-50 cut by-panic\n"
	       "    [x+0x1200] 30-50 cut by-panic\n"
	       "      [x+0x1300] 40-50 cut by-panic\n",
	       "30 10 panic\n");
}

/* One exception, which a clean-up interrupts. */
static void test_a_clean_up_on_the_way(void **state)
{
	struct thread *t = *state;

	throw_from(t, F_CALL);
	jump(t, UNWINDER + 0x80, F_PAD);
	call(t, F_PAD + 0x10, RESUME);
	jump(t, RESUME + 0x80, OUTER_PAD);
	expect(t,
	       "[x+0x1000] 10-80 inferred-start inferred-end\n"
	       "  [x+0x1100] 20-70 cut by-throw\n"
	       "    [x+0x1200] 30-50 cut by-throw\n"
	       "      [x+0x1300] 40-50 cut by-throw\n"
	       "    [x+0x1400] 60-70 cut by-throw\n",
	       "30 10 throw\n");
}

/* Which threw itself, as some runtimes do. */
static void test_nobody_between(void **state)
{
	struct thread *t = *state;

	call(t, F_CALL, UNWINDER);
	jump(t, UNWINDER + 0x80, F_PAD);
	ret(t, F_PAD + 0x10, OUTER_CALL + 5);
	expect(t,
	       "[x+0x1000] 10-60 inferred-start inferred-end\n"
	       "  [x+0x1100] 20-50\n"
	       "    [x+0x1300] 30-40 cut by-throw\n",
	       "30 20 throw\n");
}

/* Where the library's names tell what it is, but not what has called it. */
static void test_a_throw_by_a_library(void **state)
{
	throw_out(*state);
	expect(*state,
	       "[x+0x1000] 10-60 inferred-start inferred-end\n"
	       "  [x+0x1100] 20-50 cut by-throw\n"
	       "    [x+0x1200] 30-50 cut by-throw\n"
	       "      _Unwind_RaiseException 40-50 cut by-throw\n",
	       "40 10 throw\n");
}

static void test_a_panic_by_a_library(void **state)
{
	throw_out(*state);
	expect(*state,
	       "[x+0x1000] 10-60 inferred-start inferred-end\n"
	       "  [x+0x1100] 20-50 cut by-panic\n"
	       "    [x+0x1200] 30-50 cut by-panic\n"
	       "      _Unwind_RaiseException 40-50 cut by-panic\n",
	       "40 10 panic\n");
}

/* The unwinding has begun before the trace. */
static void test_a_panic_that_goes_on(void **state)
{
	struct thread *t = *state;

	call(t, F_PAD + 0x10, RESUME);
	jump(t, RESUME + 0x80, OUTER_PAD);
	expect(t,
	       "[x+0x1000] 10-50 inferred-start inferred-end\n"
	       "  [x+0x1100] 20-40 cut by-panic\n"
	       "    _Unwind_Resume 30-40 cut by-panic\n",
	       "30 10 panic\n");
}

static void test_a_throw_beside_rust(void **state)
{
	struct thread *t = *state;

	ret(t, F + 0x50, OUTER_CALL + 5);
	throw_from(t, OUTER_CALL);
	jump(t, UNWINDER + 0x80, OUTER_PAD);
	expect(t,
	       "[x+0x1000] 10-70 inferred-start inferred-end\n"
	       "  f() 20-30\n"
	       "  __cxa_throw 40-60 cut by-throw\n"
	       "    _Unwind_RaiseException 50-60 cut by-throw\n",
	       "40 10 throw\n");
}

static void test_a_throw_beside_rust_that_goes_on(void **state)
{
	struct thread *t = *state;

	call(t, F_PAD + 0x10, RESUME);
	jump(t, RESUME + 0x80, OUTER_PAD);
	expect(t,
	       "[x+0x1000] 10-50 inferred-start inferred-end\n"
	       "  f() 20-40 cut by-throw\n"
	       "    _Unwind_Resume 30-40 cut by-throw\n",
	       "30 10 throw\n");
}

#define TEST(name, start) cmocka_unit_test_setup_teardown(name, start, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_throw, start_cxx),
		TEST(test_a_panic, start_rust),
		TEST(test_a_panic, start_old_rust),
		TEST(test_a_clean_up_on_the_way, start_cxx),
		TEST(test_nobody_between, start_cxx),
		TEST(test_a_throw_by_a_library, start_dynamic_cxx),
		TEST(test_a_panic_by_a_library, start_dynamic_rust),
		TEST(test_a_panic_that_goes_on, start_dynamic_rust),
		TEST(test_a_throw_beside_rust, start_mixed),
		TEST(test_a_throw_beside_rust_that_goes_on, start_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
