// SPDX-License-Identifier: MIT
#include "target/symbols/live_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#define BASE 0x7f0000000000ull

struct fixture {
	uint8_t bytes[0x3000];
	struct elf_image *jit;
	struct code_map *map;
};

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture.map = code_map__new();
	for (size_t i = 0; i < sizeof(fixture.bytes); i++)
		fixture.bytes[i] = (uint8_t)(i >> 4);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	code_map__free(f->map);
	elf_image__free(f->jit);
	f->jit = NULL;
	return 0;
}

static const char *name_at(struct fixture *f, uint64_t ip)
{
	struct code_place place;

	return code_map__find(f->map, ip, &place) ? place.function->name : "";
}

static void test_names_and_bytes(void **state)
{
	struct fixture *f = *state;
	struct jit_piece piece = {BASE, f->bytes, 0x1000};
	struct code_place place;
	uint8_t byte;

	f->jit = jit_image__new(&piece, 1,
				"7f0000000100 20 first\n7f0000000200 5000 too long\n"
				"1000 20 elsewhere\n");
	assert_non_null(f->jit);
	assert_int_equal(jit_image__map(f->jit, BASE, 0x1000, f->map), 0);
	assert_string_equal(name_at(f, BASE + 0x110), "first");
	assert_string_equal(name_at(f, BASE + 0xfff), "too long");
	assert_string_equal(name_at(f, BASE + 0x10), "[jit+0x7f0000000000]");
	assert_string_equal(name_at(f, BASE + 0x1000), "");
	assert_true(code_map__find(f->map, BASE + 0x110, &place));
	assert_int_equal(place.entry, BASE + 0x100);
	assert_string_equal(place.function->module, "[jit]");
	assert_int_equal(code_map__read(f->map, BASE + 0x110, &byte, 1), 1);
	assert_int_equal(byte, 0x11);
}

/* A mapping shows its own part of the memory and no more. */
static void test_a_part_is_mapped(void **state)
{
	struct fixture *f = *state;
	struct jit_piece piece = {BASE, f->bytes, 0x3000};
	uint8_t bytes[0x3000];

	f->jit = jit_image__new(&piece, 1, NULL);
	assert_int_equal(jit_image__map(f->jit, BASE + 0x1000, 0x1000, f->map), 0);
	assert_int_equal(code_map__read(f->map, BASE, bytes, 1), 0);
	assert_int_equal(code_map__read(f->map, BASE + 0x1000, bytes, 0x3000), 0x1000);
	assert_memory_equal(bytes, f->bytes + 0x1000, 0x1000);
}

/* Out of order, adjacent, over one another: the bytes of each address are one of theirs. */
static void test_pieces(void **state)
{
	struct fixture *f = *state;
	struct jit_piece pieces[] = {
		{BASE + 0x2000, f->bytes + 0x2000, 0x1000},
		{BASE + 0x800, f->bytes + 0x800, 0x1000},
		{BASE, f->bytes, 0x1000},
	};
	uint8_t bytes[0x3000];

	f->jit = jit_image__new(pieces, 3, "7f0000000f00 200 across\n");
	assert_int_equal(jit_image__map(f->jit, 0, UINT64_MAX, f->map), 0);
	assert_int_equal(code_map__read(f->map, BASE, bytes, 0x2000), 0x1800);
	assert_memory_equal(bytes, f->bytes, 0x1800);
	assert_int_equal(code_map__read(f->map, BASE + 0x2000, bytes, 0x1000), 0x1000);
	assert_memory_equal(bytes, f->bytes + 0x2000, 0x1000);
	assert_string_equal(name_at(f, BASE + 0xfff), "across");
}

static void test_adjacent_pieces_are_one(void **state)
{
	struct fixture *f = *state;
	struct jit_piece pieces[] = {{BASE + 0x1000, f->bytes + 0x1000, 0x1000},
				     {BASE, f->bytes, 0x1000}};

	f->jit = jit_image__new(pieces, 2, "7f0000000ff0 20 across\n");
	assert_int_equal(jit_image__map(f->jit, BASE, 0x2000, f->map), 0);
	assert_string_equal(name_at(f, BASE + 0xfff), "across");
	assert_string_equal(name_at(f, BASE + 0x1000), "across");
}

static void test_many_pieces(void **state)
{
	struct fixture *f = *state;
	struct jit_piece pieces[256];
	struct code_place place;
	uint8_t byte;

	for (size_t i = 0; i < 256; i++)
		pieces[i] = (struct jit_piece){BASE + 0x2000 * i, f->bytes + 0x10 * i, 0x10};
	f->jit = jit_image__new(pieces, 256, NULL);
	assert_int_equal(jit_image__map(f->jit, 0, UINT64_MAX, f->map), 0);
	for (size_t i = 0; i < 256; i++) {
		uint64_t ip = BASE + 0x2000 * i + 7;

		assert_true(code_map__find(f->map, ip, &place));
		assert_int_equal(place.vaddr, ip);
		assert_int_equal(code_map__read(f->map, ip, &byte, 1), 1);
		assert_int_equal(byte, (uint8_t)i);
	}
}

static void test_empty_snapshot(void **state)
{
	struct fixture *f = *state;
	struct jit_piece piece = {BASE, f->bytes, 0};

	errno = 0;
	assert_null(jit_image__new(NULL, 0, "10 10 a\n"));
	assert_int_equal(errno, ENOENT);
	assert_null(jit_image__new(&piece, 1, NULL));
	assert_int_equal(errno, ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names_and_bytes), TEST(test_a_part_is_mapped),
		TEST(test_pieces),	    TEST(test_adjacent_pieces_are_one),
		TEST(test_many_pieces),	    TEST(test_empty_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
