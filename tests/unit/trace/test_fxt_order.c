// SPDX-License-Identifier: MIT
#include "trace/fxt_trees.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct file {
	struct call_tree tree;
	fxt_places places;
};

static void add(struct file *file, uint64_t start_ns, uint64_t end_ns, uint32_t begin, uint32_t end)
{
	*VEC_PUSH(&file->tree.calls) = (struct call){.start_ns = start_ns, .end_ns = end_ns};
	*VEC_PUSH(&file->places) = (struct fxt_place){begin, end};
}

/* "10-20/0 ": times and depth of each. */
static void expect(struct file *file, const char *expected)
{
	char text[256] = "";

	assert_int_equal(fxt_order__restore(&file->tree, &file->places), 0);
	for (size_t i = 0; i < file->tree.calls.n; i++) {
		const struct call *call = &file->tree.calls.v[i];
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%d-%d/%u ", (int)call->start_ns,
			 (int)call->end_ns, call->depth);
		if (call->depth)
			assert_int_equal(file->tree.calls.v[call->parent].depth, call->depth - 1);
	}
	assert_string_equal(text, expected);
	VEC_FINI(&file->tree.calls);
	VEC_FINI(&file->tree.done_by);
	VEC_FINI(&file->places);
}

static void test_callers_stand_behind(void **state)
{
	struct file file = {0};

	(void)state;
	add(&file, 12, 13, 0, 1);
	add(&file, 14, 15, 2, 3);
	add(&file, 11, 16, 4, 5);
	add(&file, 20, 21, 6, 7);
	add(&file, 10, 30, 8, 9);
	expect(&file, "10-30/0 11-16/1 12-13/2 14-15/2 20-21/1 ");
}

/* At one time the file's order tells whether a slice is over. */
static void test_at_one_time(void **state)
{
	struct file file = {0};

	(void)state;
	add(&file, 20, 20, 0, 1);
	add(&file, 11, 20, 2, 3);
	add(&file, 20, 20, 4, 5);
	add(&file, 10, 30, 6, 7);
	expect(&file, "10-30/0 11-20/1 20-20/2 20-20/1 ");
}

static void test_who_did_it_follows(void **state)
{
	struct file file = {0};

	(void)state;
	add(&file, 12, 13, 0, 1);
	add(&file, 14, 15, 2, 3);
	add(&file, 10, 30, 4, 5);
	*VEC_PUSH(&file.tree.done_by) = (struct done_by){.call = 1, .tid = 7};
	assert_int_equal(fxt_order__restore(&file.tree, &file.places), 0);
	assert_int_equal(file.tree.done_by.v[0].call, 2);
	expect(&file, "10-30/0 12-13/1 14-15/1 ");
}

static void test_what_does_not_nest_is_cut(void **state)
{
	struct file file = {0};

	(void)state;
	add(&file, 10, 20, 0, 1);
	add(&file, 15, 30, 2, 3);
	add(&file, 25, 28, 4, 5);
	expect(&file, "10-20/0 15-20/1 25-28/0 ");
}

/* More than fit into a digit of what they are sorted by, in each of its digits. */
static void test_many_at_all_times(void **state)
{
	struct call_tree tree = {0};
	fxt_places places = {0};
	uint64_t time = 1;

	(void)state;
	for (uint32_t i = 0; i < 20000; i++) {
		time = time * 6364136223846793005u + 1442695040888963407u;
		*VEC_PUSH(&tree.calls) =
			(struct call){.start_ns = time >> (i % 64), .end_ns = time >> (i % 64)};
		*VEC_PUSH(&places) = (struct fxt_place){2 * i, 2 * i + 1};
	}
	assert_int_equal(fxt_order__restore(&tree, &places), 0);
	for (size_t i = 1; i < tree.calls.n; i++)
		assert_true(tree.calls.v[i - 1].start_ns <= tree.calls.v[i].start_ns);
	VEC_FINI(&tree.calls);
	VEC_FINI(&places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callers_stand_behind),
		cmocka_unit_test(test_at_one_time),
		cmocka_unit_test(test_many_at_all_times),
		cmocka_unit_test(test_who_did_it_follows),
		cmocka_unit_test(test_what_does_not_nest_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
