// SPDX-License-Identifier: MIT
#include "target/code_map.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Two images of code, each byte different from its neighbours and from the other image's. */
struct fixture {
	struct code_map *map;
	struct elf_image *a, *b;
};

static struct elf_image *new_image(const char *name, uint8_t first)
{
	uint8_t bytes[0x100];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(first + i);
	return elf_image__raw(bytes, sizeof(bytes), name, name);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->map = code_map__new();
	f->a = new_image("a", 0);
	f->b = new_image("b", 0x80);
	*state = f;
	return f->map && f->a && f->b ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	code_map__free(f->map);
	elf_image__free(f->a);
	elf_image__free(f->b);
	free(f);
	return 0;
}

/* Where ip is: the image, and the place in it. */
static void assert_place(struct fixture *f, uint64_t ip, const struct elf_image *image,
			 uint64_t vaddr)
{
	struct code_place place;

	assert_true(code_map__find(f->map, ip, &place));
	assert_ptr_equal(place.image, image);
	assert_int_equal(place.vaddr, vaddr);
	assert_non_null(place.function);
	assert_int_equal(place.entry, ip - vaddr + place.function->vaddr);
}

static void assert_nowhere(struct fixture *f, uint64_t ip)
{
	struct code_place place;
	uint8_t byte;

	assert_false(code_map__find(f->map, ip, &place));
	assert_int_equal(code_map__read(f->map, ip, &byte, 1), 0);
}

static void test_an_empty_map_has_nothing(void **state)
{
	assert_nowhere(*state, 0);
	assert_nowhere(*state, UINT64_MAX);
}

static void test_finds_what_was_added(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(code_map__add(f->map, 0x7000, 0x40, 0x10, f->a), 0);
	assert_nowhere(f, 0x6fff);
	assert_place(f, 0x7000, f->a, 0x10);
	assert_place(f, 0x703f, f->a, 0x4f);
	assert_nowhere(f, 0x7040);
}

static void test_refuses_what_is_empty_or_wraps(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(code_map__add(f->map, 0x7000, 0, 0, f->a), -EINVAL);
	assert_int_equal(code_map__add(f->map, UINT64_MAX - 1, 3, 0, f->a), -EINVAL);
	assert_int_equal(code_map__add(f->map, 0x7000, 0x10, UINT64_MAX - 1, f->a), -EINVAL);
	assert_nowhere(f, 0x7000);
}

static void test_the_later_covers_the_middle(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(code_map__add(f->map, 0x1000, 0x100, 0, f->a), 0);
	assert_place(f, 0x1050, f->a, 0x50);
	assert_int_equal(code_map__add(f->map, 0x1040, 0x20, 0, f->b), 0);
	assert_place(f, 0x103f, f->a, 0x3f);
	assert_place(f, 0x1040, f->b, 0);
	assert_place(f, 0x105f, f->b, 0x1f);
	assert_place(f, 0x1060, f->a, 0x60);
	assert_place(f, 0x10ff, f->a, 0xff);
}

static void test_the_later_covers_several(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(code_map__add(f->map, 0x1000, 0x20, 0, f->a), 0);
	assert_int_equal(code_map__add(f->map, 0x1020, 0x20, 0x20, f->a), 0);
	assert_int_equal(code_map__add(f->map, 0x1050, 0x20, 0x50, f->a), 0);
	assert_int_equal(code_map__add(f->map, 0x1010, 0x50, 0, f->b), 0);
	assert_place(f, 0x100f, f->a, 0x0f);
	assert_place(f, 0x1010, f->b, 0);
	assert_place(f, 0x105f, f->b, 0x4f);
	assert_place(f, 0x1060, f->a, 0x60);
	assert_nowhere(f, 0x1070);
	assert_int_equal(code_map__add(f->map, 0x1000, 0x100, 0, f->b), 0);
	assert_place(f, 0x1000, f->b, 0);
	assert_place(f, 0x10ff, f->b, 0xff);
}

static void test_reads_across_neighbours_and_stops_at_holes(void **state)
{
	struct fixture *f = *state;
	uint8_t buf[0x40];

	assert_int_equal(code_map__add(f->map, 0x1000, 0x10, 0, f->a), 0);
	assert_int_equal(code_map__add(f->map, 0x1010, 0x10, 0, f->b), 0);
	assert_int_equal(code_map__read(f->map, 0x100e, buf, 4), 4);
	assert_memory_equal(buf, "\x0e\x0f\x80\x81", 4);
	assert_int_equal(code_map__read(f->map, 0x1018, buf, sizeof(buf)), 8);
	assert_int_equal(code_map__read(f->map, 0x1020, buf, sizeof(buf)), 0);
}

static void test_a_mapping_longer_than_its_file_ends_with_it(void **state)
{
	struct fixture *f = *state;
	struct code_place place;
	uint8_t buf[0x40];

	assert_int_equal(code_map__add(f->map, 0x1000, 0x1000, 0, f->a), 0);
	assert_int_equal(code_map__read(f->map, 0x10f0, buf, sizeof(buf)), 0x10);
	assert_false(code_map__find(f->map, 0x1100, &place));
}

/* The same as a table with an entry for each address, whatever the order of mappings. */
static void test_agrees_with_a_flat_table(void **state)
{
	struct fixture *f = *state;
	struct {
		struct elf_image *image;
		uint64_t vaddr;
	} flat[0x100] = {0};
	unsigned int seed = 7;

	for (int round = 0; round < 300; round++) {
		uint64_t start = (uint64_t)rand_r(&seed) % 0x100;
		uint64_t len = 1 + (uint64_t)rand_r(&seed) % (0x100 - start);
		uint64_t pgoff = (uint64_t)rand_r(&seed) % (0x101 - len);
		struct elf_image *image = rand_r(&seed) & 1 ? f->a : f->b;

		if (round % 3)
			len = 1 + (len - 1) % 16;
		assert_int_equal(code_map__add(f->map, 0x1000 + start, len, pgoff, image), 0);
		for (uint64_t i = 0; i < len; i++) {
			flat[start + i].image = image;
			flat[start + i].vaddr = pgoff + i;
		}
		for (uint64_t i = 0; i < 0x100; i++) {
			if (flat[i].image)
				assert_place(f, 0x1000 + i, flat[i].image, flat[i].vaddr);
			else
				assert_nowhere(f, 0x1000 + i);
		}
	}
}

/* Its bytes are others, its function is the file's. */
static void test_patches_show_until_code_is_added_there(void **state)
{
	static const uint8_t patch[] = {0xe8, 1, 2, 3, 4};
	struct fixture *f = *state;
	uint8_t buf[8];

	assert_int_equal(code_map__add(f->map, 0x1000, 0x100, 0, f->a), 0);
	assert_int_equal(code_map__patch(f->map, 0x1010, patch, 5), 0);
	assert_int_equal(code_map__replaced(f->map), 1);
	assert_int_equal(code_map__read(f->map, 0x100e, buf, 8), 8);
	assert_memory_equal(buf, "\x0e\x0f\xe8\1\2\3\4\x15", 8);
	assert_int_equal(code_map__read(f->map, 0x1013, buf, 2), 2);
	assert_memory_equal(buf, "\3\4", 2);
	assert_int_equal(code_map__read(f->map, 0x100c, buf, 6), 6);
	assert_memory_equal(buf, "\x0c\x0d\x0e\x0f\xe8\1", 6);
	assert_place(f, 0x1012, f->a, 0x12);
	/* Beside it. */
	assert_int_equal(code_map__add(f->map, 0x1015, 0x10, 0x15, f->a), 0);
	assert_int_equal(code_map__read(f->map, 0x1010, buf, 1), 1);
	assert_int_equal(buf[0], 0xe8);
	assert_int_equal(code_map__add(f->map, 0x1014, 1, 0x14, f->a), 0);
	assert_int_equal(code_map__read(f->map, 0x1010, buf, 1), 1);
	assert_int_equal(buf[0], 0x10);
}

static void test_pieces_are_what_would_be_read(void **state)
{
	static const uint8_t patch[] = {0xcc};
	struct fixture *f = *state;
	struct code_piece piece;
	uint8_t byte;

	assert_false(code_map__piece(f->map, 0x1000, &piece));
	assert_int_equal(code_map__add(f->map, 0x1000, 0x40, 0x20, f->a), 0);
	assert_int_equal(code_map__add(f->map, 0x1040, 0x1000, 0x80, f->b), 0);
	assert_true(code_map__piece(f->map, 0x1030, &piece));
	assert_int_equal(piece.start, 0x1000);
	assert_int_equal(piece.len, 0x40);
	assert_int_equal(code_map__read(f->map, 0x1030, &byte, 1), 1);
	assert_int_equal(piece.bytes[0x30], byte);
	/* It ends with the file. */
	assert_true(code_map__piece(f->map, 0x1040, &piece));
	assert_int_equal(piece.start, 0x1040);
	assert_int_equal(piece.len, 0x80);
	assert_false(code_map__piece(f->map, 0x10c0, &piece));
	assert_false(code_map__piece(f->map, 0xfff, &piece));
	assert_int_equal(code_map__patch(f->map, 0x1008, patch, sizeof(patch)), 0);
	assert_false(code_map__piece(f->map, 0x1030, &piece));
}

static void test_patches_of_a_wrong_size(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[CODE_PATCH_MAX + 1] = {0};

	assert_int_equal(code_map__patch(f->map, 0x1000, bytes, 0), -EINVAL);
	assert_int_equal(code_map__patch(f->map, 0x1000, bytes, sizeof(bytes)), -EINVAL);
	assert_int_equal(code_map__patch(f->map, UINT64_MAX - 3, bytes, 5), -EINVAL);
	/* Where there is no code there is nothing to be read. */
	assert_int_equal(code_map__patch(f->map, 0x1000, bytes, 5), 0);
	assert_nowhere(f, 0x1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_empty_map_has_nothing),
		TEST(test_finds_what_was_added),
		TEST(test_refuses_what_is_empty_or_wraps),
		TEST(test_the_later_covers_the_middle),
		TEST(test_the_later_covers_several),
		TEST(test_reads_across_neighbours_and_stops_at_holes),
		TEST(test_a_mapping_longer_than_its_file_ends_with_it),
		TEST(test_agrees_with_a_flat_table),
		TEST(test_patches_show_until_code_is_added_there),
		TEST(test_pieces_are_what_would_be_read),
		TEST(test_patches_of_a_wrong_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
