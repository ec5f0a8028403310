// SPDX-License-Identifier: MIT
/* Frames as nodes: late roots, segments, and the pre-order they end up in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "failing_realloc.h"
#include "stack/frames.h"
#include "tree_text.h"

static const struct function f = {.name = "f"}, g = {.name = "g"}, h = {.name = "h"},
			     root = {.name = "root"}, below = {.name = "below"};

static int set_up(void **state)
{
	struct frames *frames = malloc(sizeof(*frames));

	frames__init(frames);
	*state = frames;
	return 0;
}

static int tear_down(void **state)
{
	frames__fini(*state);
	free(*state);
	return 0;
}

static void push(struct frames *frames, uint64_t time_ns, const struct function *function)
{
	struct call call = {.start_ns = time_ns, .function = function};

	assert_non_null(frames__push(frames, &call));
}

/* Finishes, and compares. */
static void assert_frames(struct frames *frames, const char *expected)
{
	struct call_tree tree = {0};

	assert_int_equal(frames__finish(frames, &tree), 0);
	assert_tree(&tree, expected);
	VEC_FINI(&tree.calls);
}

static void test_empty_snapshot(void **state)
{
	assert_null(frames__top(*state));
	assert_frames(*state, "");
}

static void test_an_empty_segment(void **state)
{
	struct frames *frames = *state;

	frames__begin_segment(frames, 5);
	assert_null(frames__top(frames));
	frames__pop(frames, 6, 0);
	frames__pop_to(frames, NULL, 6, 0);
	assert_frames(frames, "");
}

static void test_push_and_pop(void **state)
{
	struct frames *frames = *state;

	frames__begin_segment(frames, 0);
	push(frames, 1, &f);
	push(frames, 2, &g);
	assert_int_equal(frames->open.n, 2);
	assert_ptr_equal(frames__top(frames)->call.function, &g);
	assert_ptr_equal(frames__parent(frames, frames__top(frames))->call.function, &f);
	frames__pop(frames, 3, 0);
	push(frames, 4, &h);
	frames__pop(frames, 5, CALL_CUT_SHORT);
	assert_null(frames__parent(frames, frames__top(frames)));
	frames__pop(frames, 6, 0);
	assert_null(frames__top(frames));
	assert_int_equal(frames->open.n, 0);
	assert_frames(frames, "f 1-6\n"
			      "  g 2-3\n"
			      "  h 4-5 cut\n");
}

static void test_cut_to_cuts_short_what_lies_above(void **state)
{
	struct frames *frames = *state;
	const struct frame *frame;

	frames__begin_segment(frames, 0);
	push(frames, 1, &f);
	push(frames, 2, &g);
	push(frames, 3, &h);
	frame = frames__parent(frames, frames__parent(frames, frames__top(frames)));
	frames__cut_to(frames, frame, 4, LEFT_BY_UNKNOWN);
	assert_ptr_equal(frames__top(frames), frame);
	frames__cut_to(frames, frame, 5, LEFT_BY_UNKNOWN);
	frames__pop(frames, 6, 0);
	assert_frames(frames, "f 1-6\n"
			      "  g 2-4 cut\n"
			      "    h 3-4 cut\n");
}

static void test_a_late_root_lies_below_everything_before_it(void **state)
{
	struct frames *frames = *state;

	frames__begin_segment(frames, 10);
	push(frames, 10, &f);
	frames__pop(frames, 12, 0);
	assert_ptr_equal(frames__emplace_root(frames, &root, 0x1000)->call.function, &root);
	push(frames, 13, &g);
	frames__pop(frames, 14, 0);
	frames__pop(frames, 15, 0);
	frames__emplace_root(frames, &below, 0x2000);
	assert_int_equal(frames->open.n, 1);
	push(frames, 16, &h);
	frames__pop_to(frames, NULL, 17, CALL_INFERRED_END);
	assert_frames(frames, "below 10-17 inferred-start inferred-end\n"
			      "  root 10-15 inferred-start\n"
			      "    f 10-12\n"
			      "    g 13-14\n"
			      "  h 16-17 inferred-end\n");
}

/* Between what ran before, and what goes on when it is over. */
static void test_late_roots_of_a_nested_part(void **state)
{
	struct frames *frames = *state;
	const struct frame *g_frame;

	frames__begin_segment(frames, 10);
	push(frames, 10, &f);
	push(frames, 11, &g);
	frames__begin_nested(frames, 12);
	assert_null(frames__top(frames));
	assert_ptr_equal(frames__below(frames)->call.function, &g);
	push(frames, 12, &h);
	frames__pop(frames, 13, 0);
	frames__emplace_root(frames, &root, 0);
	frames__pop(frames, 14, 0);
	frames__emplace_root(frames, &below, 0);
	push(frames, 15, &h);
	assert_int_equal(frames->open.n, 4);
	g_frame = frames__parent(frames, frames__parent(frames, frames__top(frames)));
	frames__pop_to(frames, g_frame, 16, 0);
	assert_ptr_equal(frames__top(frames)->call.function, &g);
	push(frames, 17, &h);
	frames__pop_to(frames, NULL, 18, 0);
	frames__emplace_root(frames, &root, 0);
	frames__pop_to(frames, NULL, 19, 0);
	assert_frames(frames, "root 10-19 inferred-start\n"
			      "  f 10-18\n"
			      "    g 11-18\n"
			      "      below 12-16 inferred-start\n"
			      "        root 12-14 inferred-start\n"
			      "          h 12-13\n"
			      "        h 15-16\n"
			      "      h 17-18\n");
}

/* The part has no calls but its roots, and another one begins in the same place. */
static void test_parts_without_calls(void **state)
{
	struct frames *frames = *state;

	frames__begin_segment(frames, 1);
	push(frames, 1, &f);
	for (int i = 2; i < 4; i++) {
		frames__begin_nested(frames, (uint64_t)i);
		frames__emplace_root(frames, &root, 0);
		frames__begin_nested(frames, (uint64_t)i);
		frames__emplace_root(frames, &below, 0);
		frames__pop_to(frames, &frames->open.v[0], (uint64_t)i + 1, 0);
	}
	frames__begin_nested(frames, 5);
	frames__pop_to(frames, NULL, 5, 0);
	frames__begin_segment(frames, 6);
	frames__begin_segment(frames, 6);
	push(frames, 6, &g);
	frames__pop_to(frames, NULL, 7, 0);
	assert_frames(frames, "f 1-5\n"
			      "  root 2-3 inferred-start\n"
			      "    below 2-3 inferred-start\n"
			      "  root 3-4 inferred-start\n"
			      "    below 3-4 inferred-start\n"
			      "g 6-7\n");
}

static void test_a_segment_of_late_roots_only(void **state)
{
	struct frames *frames = *state;

	frames__begin_segment(frames, 1);
	frames__emplace_root(frames, &root, 0);
	frames__pop(frames, 2, 0);
	frames__emplace_root(frames, &below, 0);
	frames__pop_to(frames, NULL, 3, 0);
	assert_frames(frames, "below 1-3 inferred-start\n"
			      "  root 1-2 inferred-start\n");
}

/* A return out of each level of a deep recursion that nothing was seen of. */
static void test_more_late_roots_than_there_is_room_for(void **state)
{
	struct frames *frames = *state;
	struct call_tree tree = {0};
	const uint32_t n = 5000;

	frames__begin_segment(frames, 0);
	push(frames, 0, &f);
	for (uint32_t i = 1; i <= n; i++) {
		frames__pop(frames, i, 0);
		assert_non_null(frames__emplace_root(frames, &root, i));
	}
	push(frames, n + 1, &g);
	frames__pop_to(frames, NULL, n + 2, 0);
	assert_int_equal(frames__finish(frames, &tree), 0);
	assert_well_formed(&tree);
	assert_int_equal(tree.calls.n, n + 2);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(tree.calls.v[i].entry_ip, n - i);
	assert_ptr_equal(tree.calls.v[n].function, &f);
	assert_int_equal(tree.calls.v[n].depth, n);
	assert_ptr_equal(tree.calls.v[n + 1].function, &g);
	assert_int_equal(tree.calls.v[n + 1].depth, 1);
	VEC_FINI(&tree.calls);
}

static void test_the_last_frame_can_be_dropped(void **state)
{
	struct frames *frames = *state;

	frames__begin_segment(frames, 1);
	push(frames, 1, &f);
	push(frames, 2, &g);
	assert_true(frames__is_last(frames));
	frames__drop_last(frames);
	push(frames, 3, &h);
	frames__pop(frames, 4, 0);
	assert_false(frames__is_last(frames));
	frames__pop(frames, 5, 0);
	frames__emplace_root(frames, &root, 0);
	assert_false(frames__is_last(frames));
	frames__pop_to(frames, NULL, 6, 0);
	assert_frames(frames, "root 1-6 inferred-start\n"
			      "  f 1-5\n"
			      "    h 3-4\n");
}

static void test_segments_and_gaps_stand_side_by_side(void **state)
{
	struct frames *frames = *state;

	frames__begin_segment(frames, 1);
	push(frames, 1, &f);
	frames__pop_to(frames, NULL, 3, CALL_INFERRED_END);
	frames__emplace_root(frames, &root, 0);
	frames__pop_to(frames, NULL, 3, CALL_INFERRED_END);
	frames__add_gap(frames, 3, 5, 1);
	frames__begin_segment(frames, 5);
	push(frames, 5, &g);
	push(frames, 6, &h);
	frames__pop_to(frames, NULL, 7, CALL_INFERRED_END);
	frames__add_gap(frames, 7, 9, 3);
	assert_frames(frames, "root 1-3 inferred-start inferred-end\n"
			      "  f 1-3 inferred-end\n"
			      "[gap: overflow] 3-5\n"
			      "g 5-7 inferred-end\n"
			      "  h 6-7 inferred-end\n"
			      "[gap: unmapped] 7-9\n");
}

static void test_out_of_memory_is_kept(void **state)
{
	struct frames *frames = *state;
	struct call_tree tree = {0};

	frames->failed = true;
	assert_int_equal(frames__finish(frames, &tree), -ENOMEM);
	VEC_FINI(&tree.calls);
}

/* Segments, and then open frames: more than vectors have room for at first. */
static void fill(struct frames *frames)
{
	frames__init(frames);
	for (uint64_t i = 0; i < 20; i++) {
		frames__begin_segment(frames, 100 * i);
		push(frames, 100 * i + 1, &g);
		frames__pop_to(frames, NULL, 100 * i + 50, 0);
		frames__end_segment(frames);
	}
	frames__begin_segment(frames, 5000);
	for (uint64_t i = 0; i < 20; i++)
		push(frames, 5000 + i, &h);
}

/* Whichever allocation fails, the stack that should be appended is whole, or has been appended. */
static void test_a_stack_that_cannot_be_appended_stays(void **state)
{
	int err = -ENOMEM, n_failed = 0, n_kept = 0;

	not_with_own_allocator();
	for (; err; n_failed += err != 0) {
		struct frames to, from, same;
		struct call_tree tree = {0}, expected = {0};

		frames__init(&to);
		frames__begin_segment(&to, 0);
		push(&to, 1, &f);
		frames__pop_to(&to, NULL, 2, 0);
		frames__end_segment(&to);
		fill(&from);
		fill(&same);
		realloc_left = n_failed;
		err = frames__append(&to, &from, BOUNDARY_GAP);
		realloc_left = -1;
		if (from.parts.n)
			frames__pop_to(&from, NULL, 6000, 0);
		frames__pop_to(&same, NULL, 6000, 0);
		assert_int_equal(frames__finish(&from, &tree), 0);
		assert_int_equal(frames__finish(&same, &expected), 0);
		assert_int_equal(tree.calls.n, err && tree.calls.n ? expected.calls.n : 0);
		n_kept += tree.calls.n != 0;
		for (size_t i = 0; i < tree.calls.n; i++) {
			assert_ptr_equal(tree.calls.v[i].function, expected.calls.v[i].function);
			assert_int_equal(tree.calls.v[i].start_ns, expected.calls.v[i].start_ns);
			assert_int_equal(tree.calls.v[i].end_ns, expected.calls.v[i].end_ns);
			assert_int_equal(tree.calls.v[i].parent, expected.calls.v[i].parent);
		}
		VEC_FINI(&tree.calls);
		VEC_FINI(&expected.calls);
		frames__fini(&to);
		frames__fini(&from);
		frames__fini(&same);
	}
	assert_true(n_kept >= 2);
}

/* Deeper than any recursion of our own could go. */
static void test_a_million_frames_deep(void **state)
{
	struct frames *frames = *state;
	struct call_tree tree = {0};
	const uint32_t n = 1000000;

	frames__begin_segment(frames, 0);
	for (uint32_t i = 0; i < n; i++)
		push(frames, i, &f);
	frames__pop_to(frames, NULL, n, 0);
	assert_int_equal(frames__finish(frames, &tree), 0);
	assert_int_equal(tree.calls.n, n);
	assert_int_equal(tree.calls.v[n - 1].depth, n - 1);
	assert_int_equal(tree.calls.v[n - 1].parent, n - 2);
	VEC_FINI(&tree.calls);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_empty_snapshot),
		TEST(test_an_empty_segment),
		TEST(test_push_and_pop),
		TEST(test_cut_to_cuts_short_what_lies_above),
		TEST(test_a_late_root_lies_below_everything_before_it),
		TEST(test_late_roots_of_a_nested_part),
		TEST(test_parts_without_calls),
		TEST(test_a_segment_of_late_roots_only),
		TEST(test_more_late_roots_than_there_is_room_for),
		TEST(test_the_last_frame_can_be_dropped),
		TEST(test_segments_and_gaps_stand_side_by_side),
		TEST(test_out_of_memory_is_kept),
		TEST(test_a_stack_that_cannot_be_appended_stays),
		TEST(test_a_million_frames_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
