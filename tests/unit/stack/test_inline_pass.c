// SPDX-License-Identifier: MIT
#include "inlined_tree.h"

static int set_up(void **state)
{
	struct call_tree *tree = calloc(1, sizeof(*tree));

	add_sites(tree);
	*state = tree;
	return 0;
}

static int tear_down(void **state)
{
	free_tree(*state);
	free(*state);
	return 0;
}

static void assert_becomes(struct call_tree *tree, const char *expected)
{
	assert_int_equal(inline_pass__run(tree, 1), 0);
	assert_tree(tree, expected);
}

static void test_a_call_lies_in_what_it_was_made_in(void **state)
{
	struct call_tree *tree = *state;
	const struct call *a;

	add_call(tree, 0, 0, 100, 0);
	add_call(tree, 1, 10, 20, IN_MAIN);
	add_call(tree, 1, 30, 50, IN_B);
	add_call(tree, 2, 40, 45, IN_MAIN);
	assert_becomes(tree, "f 0-100\n"
			     "  f 10-20\n"
			     "  a 30-50 inferred-start inferred-end\n"
			     "    b 30-50 inferred-start inferred-end\n"
			     "      f 30-50\n"
			     "        f 40-45\n");
	a = &tree->calls.v[2];
	assert_int_equal(a->kind, CALL_INLINED);
	assert_int_equal(a->entry_ip, IN_B);
	assert_ptr_equal(a->inlined, &a_in_main);
	assert_ptr_equal(a->function, &inlined_a);
	assert_int_equal(a->self_insns, 0);
	assert_ptr_equal(a[1].inlined, &b_in_a);
}

/* Out of b, still in a; then b again, of which nothing says that it is the same. */
static void test_neighbours_share_slices(void **state)
{
	struct call_tree *tree = *state;

	add_call(tree, 0, 0, 100, 0);
	add_call(tree, 1, 10, 20, IN_B);
	add_call(tree, 1, 20, 30, IN_B);
	add_call(tree, 1, 35, 40, IN_A);
	add_call(tree, 1, 45, 50, IN_B);
	add_call(tree, 1, 55, 60, IN_OTHER_B);
	add_call(tree, 1, 65, 70, IN_MAIN);
	add_call(tree, 1, 75, 80, IN_A);
	assert_becomes(tree, "f 0-100\n"
			     "  a 10-50 inferred-start inferred-end\n"
			     "    b 10-30 inferred-start inferred-end\n"
			     "      f 10-20\n"
			     "      f 20-30\n"
			     "    f 35-40\n"
			     "    b 45-50 inferred-start inferred-end\n"
			     "      f 45-50\n"
			     "  b 55-60 inferred-start inferred-end\n"
			     "    f 55-60\n"
			     "  f 65-70\n"
			     "  a 75-80 inferred-start inferred-end\n"
			     "    f 75-80\n");
}

/* Two frames of the same function: each has its own. */
static void test_frames_share_nothing(void **state)
{
	struct call_tree *tree = *state;

	add_call(tree, 0, 0, 100, 0);
	add_call(tree, 1, 10, 50, IN_A);
	add_call(tree, 2, 20, 40, IN_A);
	add_call(tree, 3, 25, 30, IN_A);
	add_call(tree, 1, 60, 70, IN_A);
	add_call(tree, 0, 100, 200, 0);
	add_call(tree, 1, 110, 120, IN_A);
	assert_becomes(tree, "f 0-100\n"
			     "  a 10-70 inferred-start inferred-end\n"
			     "    f 10-50\n"
			     "      a 20-40 inferred-start inferred-end\n"
			     "        f 20-40\n"
			     "          a 25-30 inferred-start inferred-end\n"
			     "            f 25-30\n"
			     "    f 60-70\n"
			     "f 100-200\n"
			     "  a 110-120 inferred-start inferred-end\n"
			     "    f 110-120\n");
}

/* A call from nowhere known is in nothing, a gap between segments neither. */
static void test_nothing_known_nothing_put_in(void **state)
{
	struct call_tree *tree = *state;

	add_call(tree, 0, 0, 100, IN_A);
	add_call(tree, 1, 10, 20, IN_A);
	add_call(tree, 1, 30, 40, NOT_KNOWN);
	add_call(tree, 1, 50, 60, 0);
	add_call(tree, 1, 70, 80, IN_A + 1);
	add_call(tree, 0, 100, 200, 0)->kind = CALL_GAP;
	assert_becomes(tree, "f 0-100\n"
			     "  a 10-20 inferred-start inferred-end\n"
			     "    f 10-20\n"
			     "  f 30-40\n"
			     "  f 50-60\n"
			     "  f 70-80\n"
			     "[gap] 100-200\n");
}

/* Where the jump stands is in the callee that it ends: its successor was called from a. */
static void test_tail_calls_and_handlers_stay_in_it(void **state)
{
	struct call_tree *tree = *state;

	add_call(tree, 0, 0, 100, 0);
	add_call(tree, 1, 10, 20, IN_A);
	add_call(tree, 1, 20, 30, IN_OTHER_B)->flags = CALL_BY_JUMP;
	add_call(tree, 1, 40, 50, IN_B)->kind = CALL_SYSCALL;
	add_call(tree, 1, 50, 60, 0)->kind = CALL_SIGNAL;
	add_call(tree, 1, 70, 80, IN_B)->kind = CALL_UNTRACED;
	assert_becomes(tree, "f 0-100\n"
			     "  a 10-80 inferred-start inferred-end\n"
			     "    f 10-20\n"
			     "    f 20-30 by-jump\n"
			     "    b 40-80 inferred-start inferred-end\n"
			     "      [syscall] 40-50\n"
			     "      f 50-60 signal\n"
			     "      [untraced] 70-80\n");
}

/* Thrown in the second call, caught in the root; and the first call is where both stand. */
static void test_what_tells_calls_by_their_places(void **state)
{
	struct call_tree *tree = *state;

	add_call(tree, 0, 0, 100, 0);
	add_call(tree, 1, 10, 20, IN_MAIN);
	add_call(tree, 1, 30, 50, IN_B);
	add_call(tree, 2, 40, 50, IN_A);
	*VEC_PUSH(&tree->unwinds) = (struct unwind){.from = 1, .to = 0};
	*VEC_PUSH(&tree->unwinds) = (struct unwind){.from = 3, .to = 2};
	*VEC_PUSH(&tree->done_by) = (struct done_by){.call = 2};
	assert_int_equal(inline_pass__run(tree, 1), 0);
	assert_int_equal(tree->unwinds.v[0].from, 1);
	assert_int_equal(tree->unwinds.v[0].to, 0);
	assert_int_equal(tree->unwinds.v[1].from, 6);
	assert_int_equal(tree->unwinds.v[1].to, 4);
	assert_int_equal(tree->done_by.v[0].call, 4);
	assert_int_equal(tree->calls.v[6].start_ns, 40);
	assert_int_equal(tree->calls.v[4].start_ns, 30);
	assert_int_equal(tree->calls.v[4].kind, CALL_FUNCTION);
}

static void test_nothing_inlined_nothing_touched(void **state)
{
	struct call_tree tree = {0};
	const struct call *before;

	add_call(&tree, 0, 0, 100, 0);
	add_call(&tree, 1, 10, 20, IN_A);
	before = tree.calls.v;
	assert_becomes(&tree, "f 0-100\n  f 10-20\n");
	assert_ptr_equal(tree.calls.v, before);
	free_tree(&tree);
}

/* Random trees: the physical calls are there as before, in their order, and well nested. */
static void test_any_tree(void **state)
{
	static const uint64_t ips[] = {0, IN_MAIN, IN_A, IN_B, IN_OTHER_B, NOT_KNOWN};
	unsigned int seed = 3;

	for (int round = 0; round < 500; round++) {
		struct call_tree tree = {0};
		uint64_t now = 0;
		size_t n = 0;

		add_sites(&tree);
		for (uint32_t i = 0, depth = 0; i < 200; i++) {
			depth = i ? (uint32_t)rand_r(&seed) % (depth + 2) : 0;
			add_call(&tree, depth, ++now, 1000, ips[rand_r(&seed) % 6])->self_insns = i;
			/* What is over by now has ended before it. */
			for (size_t k = i; k-- && tree.calls.v[k].start_ns;)
				if (tree.calls.v[k].depth >= depth &&
				    tree.calls.v[k].end_ns == 1000)
					tree.calls.v[k].end_ns = now;
		}
		assert_int_equal(inline_pass__run(&tree, 1), 0);
		assert_well_formed(&tree);
		for (size_t i = 0; i < tree.calls.n; i++) {
			const struct call *call = &tree.calls.v[i];

			if (call->kind == CALL_INLINED) {
				assert_true(i + 1 < tree.calls.n);
				assert_int_equal(tree.calls.v[i + 1].parent, i);
				assert_int_equal(tree.calls.v[i + 1].start_ns, call->start_ns);
			} else {
				assert_int_equal(call->self_insns, n);
				n++;
			}
		}
		assert_int_equal(n, 200);
		assert_true(tree.calls.n > n);
		free_tree(&tree);
	}
}

#define TREE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_a_call_lies_in_what_it_was_made_in),
		TREE_TEST(test_neighbours_share_slices),
		TREE_TEST(test_frames_share_nothing),
		TREE_TEST(test_nothing_known_nothing_put_in),
		TREE_TEST(test_tail_calls_and_handlers_stay_in_it),
		TREE_TEST(test_what_tells_calls_by_their_places),
		cmocka_unit_test(test_nothing_inlined_nothing_touched),
		cmocka_unit_test(test_any_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
