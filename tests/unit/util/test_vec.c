// SPDX-License-Identifier: MIT
#include "util/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef VEC(int) int_vec;

/* Enough for the array to grow several times. */
#define MANY 100

static int_vec numbers(int n)
{
	int_vec vec = {0};

	for (int i = 0; i < n; i++)
		assert_int_equal(VEC_ADD(&vec, i), 0);
	return vec;
}

static void test_find(void **state)
{
	static const char *const names[] = {"a", "b", "b"};
	int_vec empty = {0}, vec = numbers(MANY);
	const int_vec *read_only = &vec;

	assert_null(VEC_FIND(&empty, e, true));
	assert_null(VEC_FIND(&vec, e, *e == MANY));
	assert_ptr_equal(VEC_FIND(&vec, e, *e >= 7), &vec.v[7]);
	assert_ptr_equal(VEC_FIND(read_only, e, *e == MANY - 1), &vec.v[MANY - 1]);
	assert_ptr_equal(ARRAY_FIND(names, e, !strcmp(*e, "b")), &names[1]);
	assert_null(ARRAY_FIND(names, e, !strcmp(*e, "c")));
	assert_null(FIND_IN(names, 1, e, !strcmp(*e, "b")));
	VEC_FINI(&vec);
}

static void test_drop(void **state)
{
	int_vec vec = numbers(MANY);
	int sum = 0;

	VEC_DROP_EACH(&vec, e, *e % 3 == 0, sum += *e);
	assert_int_equal(sum, 3 * 33 * 34 / 2);
	assert_int_equal(vec.n, 66);
	for (size_t i = 0; i < vec.n; i++)
		assert_int_equal(vec.v[i], 3 * (int)(i / 2) + 1 + (int)(i % 2));
	VEC_DROP(&vec, e, true);
	assert_int_equal(vec.n, 0);
	VEC_DROP(&vec, e, true);
	VEC_FINI(&vec);
}

static void test_insert(void **state)
{
	int_vec vec = {0};

	/* The last number first, then always before it; at last one at the end. */
	for (int i = MANY; i > 0; i--)
		assert_int_equal(VEC_INSERT(&vec, 0, i), 0);
	assert_int_equal(VEC_INSERT(&vec, 50, -1), 0);
	assert_int_equal(VEC_INSERT(&vec, vec.n, -2), 0);
	assert_int_equal(vec.n, MANY + 2);
	for (int i = 0; i < 50; i++)
		assert_int_equal(vec.v[i], i + 1);
	assert_int_equal(vec.v[50], -1);
	assert_int_equal(vec.v[51], 51);
	assert_int_equal(vec.v[MANY + 1], -2);
	VEC_FINI(&vec);
}

static void test_hash_find(void **state)
{
	struct hash_index index = {0};

	assert_int_equal(HASH_FIND(&index, 1, i, true), 0);
	for (uint32_t i = 1; i <= MANY; i++)
		assert_int_equal(hash_index__add(&index, i % 2, i), 0);
	assert_int_equal(HASH_FIND(&index, 1, i, i > 50), 51);
	assert_int_equal(HASH_FIND(&index, 0, i, i > 50), 52);
	assert_int_equal(HASH_FIND(&index, 0, i, i % 2), 0);
	assert_int_equal(HASH_FIND(&index, 2, i, true), 0);
	hash_index__fini(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_insert),
		cmocka_unit_test(test_hash_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
