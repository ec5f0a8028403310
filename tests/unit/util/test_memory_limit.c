// SPDX-License-Identifier: MIT
#include "util/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "sanitizers.h"

#define MIB (1u << 20)

static int no_limit(void **state)
{
	(void)state;
	memory_limit__set(UINT64_MAX);
	return 0;
}

static void test_there_is_none_before_it_is_set(void **state)
{
	assert_int_equal(memory_limit__get(), UINT64_MAX);
	assert_true(memory_limit__allows(SIZE_MAX / 2));
	assert_false(memory_limit__was_met());
}

static void test_what_is_in_use_does_not_count(void **state)
{
	void *before, *more;

	not_with_own_allocator();
	before = malloc(30 * MIB);
	assert_non_null(before);
	memory_limit__set(10 * MIB);
	assert_true(memory_limit__allows(9 * MIB));
	assert_false(memory_limit__allows(11 * MIB));
	more = malloc(5 * MIB);
	assert_non_null(more);
	assert_false(memory_limit__allows(6 * MIB));
	assert_true(memory_limit__allows(4 * MIB));
	free(more);
	free(before);
	assert_true(memory_limit__allows(9 * MIB));
}

static void test_a_refusal_is_told_of_once(void **state)
{
	not_with_own_allocator();
	memory_limit__set(10 * MIB);
	memory_limit__allows(20 * MIB);
	assert_true(memory_limit__was_met());
	assert_false(memory_limit__was_met());
	memory_limit__allows(20 * MIB);
	memory_limit__set(10 * MIB);
	assert_false(memory_limit__was_met());
}

static void test_little_is_looked_at_now_and_then(void **state)
{
	unsigned int n = 0;

	not_with_own_allocator();
	memory_limit__set(1);
	assert_false(memory_limit__allows(MIB));
	while (memory_limit__allows(1000))
		n++;
	assert_in_range(n, MIB / 1000, MIB / 1000 + 1);
	assert_true(memory_limit__allows(1000));
}

static void test_of_the_machine_most_but_not_all(void **state)
{
	memory_limit__set(0);
	assert_in_range(memory_limit__get(), 16 * MIB, (uint64_t)1 << 45);
	assert_true(memory_limit__allows(MIB));
}

/* It grows by less where it cannot double, and stays whole where it cannot grow. */
static void test_an_array_grows_as_far_as_it_may(void **state)
{
	VEC(uint64_t) list = {0};
	uint64_t *element;

	not_with_own_allocator();
	memory_limit__set(10 * MIB);
	while ((element = VEC_PUSH(&list)))
		*element = list.n;
	assert_in_range(list.n * sizeof(*list.v), 7 * MIB, 10 * MIB);
	for (size_t i = 0; i < list.n; i++)
		assert_int_equal(list.v[i], i + 1);
	VEC_FINI(&list);
}

static void test_an_index_grows_as_far_as_it_may(void **state)
{
	struct hash_index index = {0};
	uint32_t n = 0;
	int err;

	not_with_own_allocator();
	memory_limit__set(10 * MIB);
	while (!(err = hash_index__add(&index, hash__mix(0, n + 1), n + 1)) && n < 10 * MIB)
		n++;
	assert_int_equal(err, -ENOMEM);
	/* While it grows, the old slots are needed as well. */
	assert_in_range(index.cap * sizeof(*index.slots), 3 * MIB, 10 * MIB);
	for (uint32_t i = 0; i < n; i++) {
		size_t at = 0;
		uint32_t found;

		do
			found = hash_index__next(&index, hash__mix(0, i + 1), &at);
		while (found && found != i + 1);
		assert_int_equal(found, i + 1);
	}
	hash_index__fini(&index);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, no_limit)
	const struct CMUnitTest tests[] = {
		TEST(test_there_is_none_before_it_is_set),
		TEST(test_what_is_in_use_does_not_count),
		TEST(test_a_refusal_is_told_of_once),
		TEST(test_little_is_looked_at_now_and_then),
		TEST(test_of_the_machine_most_but_not_all),
		TEST(test_an_array_grows_as_far_as_it_may),
		TEST(test_an_index_grows_as_far_as_it_may),
	};

	return cmocka_run_group_tests_name("memory_limit", tests, NULL, NULL);
}
