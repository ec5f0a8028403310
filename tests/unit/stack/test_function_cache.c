// SPDX-License-Identifier: MIT
/* What is remembered of the code must be what the code is now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "stack/functions.h"

#define CODE 0x10000
#define SIZE 0x8000

struct fixture {
	struct code_map *map;
	struct elf_image *images[2];
	struct function_cache cache;
};

static int set_up(void **state)
{
	static const uint8_t code[SIZE];
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->map = code_map__new();
	fixture->images[0] = elf_image__raw(code, SIZE, "old", "old");
	fixture->images[1] = elf_image__raw(code, SIZE, "new", "new");
	function_cache__init(&fixture->cache, fixture->map);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	code_map__free(fixture->map);
	elf_image__free(fixture->images[0]);
	elf_image__free(fixture->images[1]);
	free(fixture);
	return 0;
}

static void map(struct fixture *fixture, int image)
{
	assert_int_equal(code_map__add(fixture->map, CODE, SIZE, 0, fixture->images[image]), 0);
}

static void expect(struct fixture *fixture, uint64_t ip, const char *name, bool entry)
{
	bool is_entry;
	const struct function *function = function_cache__find(&fixture->cache, ip, &is_entry);

	assert_string_equal(function ? function->name : "-", name);
	assert_int_equal(is_entry, entry);
}

static void test_entries(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0);
	for (int round = 0; round < 2; round++) {
		expect(fixture, CODE, "old", true);
		expect(fixture, CODE + 1, "old", false);
		expect(fixture, CODE + SIZE, "-", false);
	}
}

/* As many addresses as the cache has places. */
static void test_each_address(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0);
	for (int round = 0; round < 2; round++)
		for (uint64_t i = 0; i < SIZE; i++)
			expect(fixture, CODE + i, "old", i == 0);
}

/* An address of the next image that has the place of CODE + i. */
static uint64_t same_place(struct fixture *fixture, uint64_t i)
{
	for (uint64_t k = 0; k < SIZE; k++)
		if (function_cache__place(&fixture->cache, CODE + SIZE + k) ==
		    function_cache__place(&fixture->cache, CODE + i))
			return CODE + SIZE + k;
	fail();
	return 0;
}

/* Two addresses of one place are both kept, and each is still itself when others have passed. */
static void test_addresses_that_share_a_place(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0);
	assert_int_equal(code_map__add(fixture->map, CODE + SIZE, SIZE, 0, fixture->images[1]), 0);
	for (uint64_t i = 0; i < 64; i++) {
		struct cached_function *first = function_cache__place(&fixture->cache, CODE + i);
		size_t place = (size_t)(first - fixture->cache.places);
		uint64_t other = same_place(fixture, i);

		for (int round = 0; round < 3; round++) {
			expect(fixture, CODE + i, "old", i == 0);
			expect(fixture, other, "new", other == CODE + SIZE);
			assert_true(first->ip == other);
			assert_true(fixture->cache.places[place ^ 1].ip == CODE + i);
		}
	}
}

static void test_code_that_comes_later(void **state)
{
	struct fixture *fixture = *state;

	expect(fixture, 0, "-", false);
	expect(fixture, CODE, "-", false);
	map(fixture, 0);
	expect(fixture, CODE, "old", true);
}

static void test_code_in_the_place_of_other_code(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0);
	expect(fixture, CODE, "old", true);
	map(fixture, 1);
	function_cache__follow(&fixture->cache);
	expect(fixture, CODE, "new", true);
	function_cache__follow(&fixture->cache);
	expect(fixture, CODE + 1, "new", false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_entries),
		TEST(test_each_address),
		TEST(test_addresses_that_share_a_place),
		TEST(test_code_that_comes_later),
		TEST(test_code_in_the_place_of_other_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
