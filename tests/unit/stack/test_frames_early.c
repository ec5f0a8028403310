// SPDX-License-Identifier: MIT
/* Calls that are told before the tree is finished. */
#include "frames_early_fixture.h"

static const struct inlined in_a, in_b;

static void call(struct frames *frames, uint64_t start_ns, uint64_t end_ns, uint64_t ip)
{
	push(frames, start_ns, ip);
	frames__pop(frames, end_ns, 0);
}

/* A segment that has begun in call 1. */
static struct frames *begin(struct fixture *fixture)
{
	frames__begin_segment(&fixture->frames, 10);
	push(&fixture->frames, 10, 1);
	return &fixture->frames;
}

static size_t finish(struct frames *frames, struct call_tree *tree)
{
	*tree = (struct call_tree){0};
	frames__pop_to(frames, NULL, 1000000, CALL_INFERRED_END);
	assert_int_equal(frames__finish(frames, tree), 0);
	return tree->calls.n;
}

static void expect_left(struct fixture *fixture, size_t n)
{
	struct call_tree tree;

	assert_int_equal(finish(&fixture->frames, &tree), n);
	VEC_FINI(&tree.calls);
	VEC_FINI(&tree.unwinds);
}

static void test_told_as_they_end(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	push(frames, 11, 2);
	call(frames, 12, 13, 3);
	assert_string_equal(fixture->told, "3 ");
	call(frames, 13, 13, 4);
	frames__pop(frames, 14, 0);
	assert_string_equal(fixture->told, "3 4 2 ");
	expect_left(fixture, 1);
}

/* Its begin has to stand behind that of its caller, which is told later. */
static void test_begins_with_its_caller(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	call(frames, 10, 11, 2);
	push(frames, 12, 3);
	push(frames, 12, 4);
	call(frames, 13, 14, 5);
	frames__pop(frames, 15, 0);
	frames__pop(frames, 16, 0);
	assert_string_equal(fixture->told, "5 3+4 ");
	expect_left(fixture, 2);
}

static void test_begins_when_what_is_kept_ends(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	push(frames, 12, 2);
	call(frames, 12, 14, 3);
	call(frames, 14, 15, 4);
	call(frames, 16, 17, 5);
	frames__pop(frames, 18, 0);
	assert_string_equal(fixture->told, "5 2+3+4 ");
}

static void test_may_run_on_behind_a_gap(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	push(frames, 12, 2);
	frames__pop_to(frames, NULL, 14, CALL_INFERRED_END);
	assert_string_equal(fixture->told, "");
	expect_left(fixture, 2);
}

static void test_callers_found_late(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	call(frames, 12, 13, 2);
	frames__pop(frames, 14, 0);
	assert_non_null(frames__emplace_root(frames, &root, 3));
	call(frames, 14, 15, 4);
	call(frames, 16, 17, 5);
	assert_string_equal(fixture->told, "2 5 ");
	expect_left(fixture, 3);
}

/* An unwind names its first call by its place. */
static void test_unwinds(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);
	struct unwind unwind = {.start_ns = 14, .end_ns = 15};
	struct call_tree tree;

	call(frames, 11, 12, 2);
	push(frames, 13, 3);
	push(frames, 14, 4);
	frames__name(frames, frames__top(frames));
	unwind.from = frames__top(frames)->index;
	frames__cut_to(frames, &frames->open.v[0], 15, LEFT_BY_THROW);
	frames__add_unwind(frames, &unwind, frames__top(frames));
	call(frames, 16, 17, 5);
	assert_string_equal(fixture->told, "2 5 ");
	assert_int_equal(finish(frames, &tree), 3);
	assert_int_equal(tree.unwinds.n, 1);
	assert_int_equal(tree.calls.v[tree.unwinds.v[0].from].entry_ip, 4);
	assert_int_equal(tree.calls.v[tree.unwinds.v[0].to].entry_ip, 1);
	VEC_FINI(&tree.calls);
	VEC_FINI(&tree.unwinds);
}

/* A slice of inlined code spans several calls: whoever makes it has to see all of them. */
static void test_calls_in_inlined_code(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	fixture->in[4] = fixture->in[5] = fixture->in[9] = &in_a;
	fixture->in[7] = &in_b;
	push(frames, 11, 2);
	call(frames, 12, 13, 3);
	call(frames, 14, 15, 4);
	push(frames, 16, 5);
	call(frames, 17, 18, 6);
	frames__pop(frames, 19, 0);
	assert_string_equal(fixture->told, "3 6 ");
	call(frames, 20, 21, 7);
	assert_string_equal(fixture->told, "3 6 4+5 ");
	call(frames, 22, 23, 8);
	assert_string_equal(fixture->told, "3 6 4+5 7 8 ");
	call(frames, 24, 25, 9);
	frames__pop(frames, 26, 0);
	assert_string_equal(fixture->told, "3 6 4+5 7 8 2+9 ");
	expect_left(fixture, 1);
}

/* The callee behind them has itself called what waits with it. */
static void test_inlined_code_before_a_call_of_several(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	fixture->in[2] = &in_a;
	fixture->in[5] = &in_b;
	call(frames, 12, 13, 2);
	push(frames, 14, 3);
	call(frames, 14, 15, 4);
	frames__pop(frames, 16, 0);
	assert_string_equal(fixture->told, "2 3+4 ");
	call(frames, 17, 18, 2);
	push(frames, 19, 5);
	call(frames, 19, 20, 6);
	frames__pop(frames, 21, 0);
	assert_string_equal(fixture->told, "2 3+4 2 ");
	call(frames, 22, 23, 7);
	assert_string_equal(fixture->told, "2 3+4 2 5+6 7 ");
	expect_left(fixture, 1);
}

static void test_tail_calls_in_inlined_code(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	fixture->in[2] = &in_a;
	call(frames, 12, 13, 2);
	assert_non_null(frames__push(
		frames, &(struct call){.start_ns = 13, .entry_ip = 3, .flags = CALL_BY_JUMP}));
	frames__pop(frames, 14, 0);
	assert_string_equal(fixture->told, "");
	call(frames, 15, 16, 4);
	assert_string_equal(fixture->told, "2+3 4 ");
}

/* One of them begins with the caller, and is told with it: so are those that share its slice. */
static void test_inlined_code_from_the_begin_on(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	fixture->in[3] = fixture->in[4] = &in_a;
	push(frames, 12, 2);
	call(frames, 12, 13, 3);
	call(frames, 14, 15, 4);
	call(frames, 16, 17, 5);
	assert_string_equal(fixture->told, "5 ");
	frames__pop(frames, 18, 0);
	assert_string_equal(fixture->told, "5 2+3+4 ");
}

/* The caller itself is kept: its callees need not be, unless the slice may go on behind a gap. */
static void test_inlined_code_at_the_end(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	fixture->in[2] = fixture->in[3] = &in_a;
	call(frames, 12, 13, 2);
	frames__pop(frames, 14, 0);
	assert_string_equal(fixture->told, "2 ");
	frames__begin_segment(frames, 20);
	push(frames, 20, 1);
	call(frames, 22, 23, 3);
	frames__pop_to(frames, NULL, 24, CALL_INFERRED_END);
	assert_string_equal(fixture->told, "2 ");
	expect_left(fixture, 3);
}

static void test_nested_parts(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	push(frames, 11, 2);
	frames__begin_nested(frames, 12);
	push(frames, 12, 3);
	call(frames, 13, 14, 4);
	frames__pop_to(frames, &frames->open.v[1], 15, 0);
	call(frames, 15, 16, 5);
	call(frames, 17, 18, 6);
	frames__pop(frames, 19, 0);
	assert_string_equal(fixture->told, "4 6 ");
	expect_left(fixture, 4);
}

/* How deep they lie is known at the end only, and files have a limit. */
static void test_deep_ones(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	for (uint64_t i = 0; i < 300; i++)
		push(frames, 11 + i, 2 + i);
	for (uint64_t i = 0; i < 300; i++)
		frames__pop(frames, 400 + i, 0);
	assert_string_equal(fixture->told, "");
	call(frames, 800, 801, 500);
	assert_string_equal(fixture->told, "500 ");
	expect_left(fixture, 301);
}

/* A slice in one record, with others in it that are told elsewhere, must not end as they do. */
static void test_what_ended_with_its_callee(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);
	struct call_tree tree;

	push(frames, 11, 2);
	call(frames, 12, 13, 3);
	frames__pop_to(frames, NULL, 13, CALL_INFERRED_END);
	assert_int_equal(finish(frames, &tree), 2);
	assert_false(tree.calls.v[0].told_at_end);
	assert_true(tree.calls.v[1].told_at_end);
	VEC_FINI(&tree.calls);
}

/* Another frame may get its place: a longjmp() must not take that for its. */
static void test_landings_of_what_was_told(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);
	struct landing landing = {.ip = 1, .depth = 1};

	push(frames, 11, 2);
	landing.index = frames__top(frames)->index;
	*VEC_PUSH(&frames->landings) = (struct landing){.ip = 2};
	*VEC_PUSH(&frames->landings) = landing;
	call(frames, 12, 13, 3);
	assert_int_equal(frames->landings.n, 2);
	frames__pop(frames, 14, 0);
	push(frames, 15, 4);
	assert_int_equal(frames__top(frames)->index, landing.index);
	assert_int_equal(frames->landings.n, 1);
}

static void test_nobody_takes_it(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	fixture->err = -ENOMEM;
	call(frames, 12, 13, 2);
	assert_true(frames->failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EARLY_TEST(test_told_as_they_end),
		EARLY_TEST(test_begins_with_its_caller),
		EARLY_TEST(test_begins_when_what_is_kept_ends),
		EARLY_TEST(test_may_run_on_behind_a_gap),
		EARLY_TEST(test_callers_found_late),
		EARLY_TEST(test_unwinds),
		EARLY_TEST(test_calls_in_inlined_code),
		EARLY_TEST(test_inlined_code_before_a_call_of_several),
		EARLY_TEST(test_tail_calls_in_inlined_code),
		EARLY_TEST(test_inlined_code_from_the_begin_on),
		EARLY_TEST(test_inlined_code_at_the_end),
		EARLY_TEST(test_nested_parts),
		EARLY_TEST(test_deep_ones),
		EARLY_TEST(test_what_ended_with_its_callee),
		EARLY_TEST(test_landings_of_what_was_told),
		EARLY_TEST(test_nobody_takes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
