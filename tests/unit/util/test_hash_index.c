// SPDX-License-Identifier: MIT
#include "util/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_empty(void **state)
{
	struct hash_index index = {0};
	size_t at = 0;

	assert_int_equal(hash_index__next(&index, 0, &at), 0);
	hash_index__fini(&index);
}

/* All are found, however often it has grown in between, and nothing else is. */
static void test_many(void **state)
{
	struct hash_index index = {0};

	for (uint32_t i = 1; i <= 10000; i++)
		assert_int_equal(hash_index__add(&index, hash__mix(7, i), i), 0);
	for (uint32_t i = 1; i <= 20000; i++) {
		size_t at = 0;

		assert_int_equal(hash_index__next(&index, hash__mix(7, i), &at),
				 i <= 10000 ? i : 0);
	}
	hash_index__fini(&index);
}

static void test_same_hash(void **state)
{
	struct hash_index index = {0};
	uint32_t sum = 0, n = 0, number;
	size_t at = 0;

	for (uint32_t i = 1; i <= 200; i++)
		assert_int_equal(hash_index__add(&index, i % 2, i), 0);
	while ((number = hash_index__next(&index, 1, &at))) {
		assert_int_equal(number % 2, 1);
		sum += number;
		n++;
	}
	assert_int_equal(n, 100);
	assert_int_equal(sum, 10000);
	hash_index__fini(&index);
}

static void test_bytes(void **state)
{
	static const char text[] = "a name of some length";

	assert_int_equal(hash__bytes(1, text, 20), hash__bytes(1, text, 20));
	assert_int_not_equal(hash__bytes(1, text, 20), hash__bytes(2, text, 20));
	assert_int_not_equal(hash__bytes(1, text, 20), hash__bytes(1, text, 19));
	/* A NUL more is another name. */
	assert_int_not_equal(hash__bytes(1, "ab\0", 2), hash__bytes(1, "ab\0", 3));
	assert_int_equal(hash__bytes(1, NULL, 0), hash__bytes(1, text, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_same_hash),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
