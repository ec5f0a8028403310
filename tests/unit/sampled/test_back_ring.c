// SPDX-License-Identifier: MIT
/* Rings that overwrite their oldest records: what is whole is read, the newest first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/perf/perf_ring.h"

#define SIZE 256

/* A ring in our memory, written as the kernel does. */
struct fake {
	struct perf_event_mmap_page page;
	uint8_t data[SIZE];
	struct perf_ring ring;
};

static int set_up(void **state)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ring = (struct perf_ring){.page = &f->page, .data = f->data, .data_size = SIZE};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void put(struct fake *f, const void *bytes, size_t n)
{
	f->page.data_head -= n;
	for (size_t i = 0; i < n; i++)
		f->data[(f->page.data_head + i) % SIZE] = ((const uint8_t *)bytes)[i];
}

/* A record of `size` bytes whose last tells its number. */
static void put_record(struct fake *f, uint16_t size, uint8_t number)
{
	uint8_t record[SIZE] = {0};
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = size};

	memcpy(record, &header, sizeof(header));
	record[size - 1] = number;
	put(f, record, size);
}

/* Their numbers, newest first, as a text. */
static void assert_records(const struct fake *f, const char *numbers)
{
	struct perf_ring_cursor cursor = perf_ring__newest(&f->ring);
	char text[64] = "";
	uint8_t record[SIZE];
	size_t len = 0;
	int n;

	while ((n = perf_ring__older(&f->ring, &cursor, record, sizeof(record))) > 0)
		text[len++] = (char)('0' + record[n - 1]);
	assert_int_equal(n, 0);
	assert_string_equal(text, numbers);
}

static void test_nothing_written(void **state)
{
	assert_records(*state, "");
}

static void test_what_was_cleared_is_not_read(void **state)
{
	struct fake *f = *state;

	put_record(f, 64, 1);
	put_record(f, 64, 2);
	perf_ring__clear(&f->ring);
	assert_records(f, "");
	assert_int_equal(perf_ring__written(&f->ring), 0);
	put_record(f, 64, 3);
	assert_records(f, "3");
	assert_int_equal(perf_ring__written(&f->ring), 64);
	/* Round again: all that it holds is new. */
	for (uint8_t i = 4; i < 9; i++)
		put_record(f, 64, i);
	assert_records(f, "8765");
}

static void test_newest_first(void **state)
{
	struct fake *f = *state;

	put_record(f, 24, 1);
	put_record(f, 40, 2);
	put_record(f, 16, 3);
	assert_records(f, "321");
}

/* Five of 56 bytes do not fit: of the oldest only the begin is left. */
static void test_the_overwritten_one_is_left_out(void **state)
{
	struct fake *f = *state;

	for (uint8_t i = 1; i <= 5; i++)
		put_record(f, 56, i);
	assert_records(f, "5432");
}

static void test_a_ring_that_is_just_full(void **state)
{
	struct fake *f = *state;

	for (uint8_t i = 1; i <= 4; i++)
		put_record(f, 64, i);
	assert_records(f, "4321");
	put_record(f, 64, 5);
	assert_records(f, "5432");
}

static void test_round_and_round(void **state)
{
	struct fake *f = *state;

	for (int i = 1; i <= 1000; i++)
		put_record(f, (uint16_t)(16 + 8 * (i % 3)), (uint8_t)(i % 10));
	struct perf_ring_cursor cursor = perf_ring__newest(&f->ring);
	uint8_t record[SIZE];
	int expected = 1000, n;

	while ((n = perf_ring__older(&f->ring, &cursor, record, sizeof(record))) > 0) {
		assert_int_equal(n, 16 + 8 * (expected % 3));
		assert_int_equal(record[n - 1], expected % 10);
		expected--;
	}
	/* Records of 16, 24 and 32 bytes: ten are in 256. */
	assert_true(1000 - expected >= 9);
}

static void test_one_that_is_too_large_is_skipped(void **state)
{
	struct fake *f = *state;
	struct perf_ring_cursor cursor;
	uint8_t small[32];

	put_record(f, 24, 1);
	put_record(f, 64, 2);
	cursor = perf_ring__newest(&f->ring);
	assert_int_equal(perf_ring__older(&f->ring, &cursor, small, sizeof(small)), -EMSGSIZE);
	assert_int_equal(perf_ring__older(&f->ring, &cursor, small, sizeof(small)), 24);
	assert_int_equal(small[23], 1);
}

static void test_a_broken_size_ends_it(void **state)
{
	struct fake *f = *state;
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = 0};

	put_record(f, 24, 1);
	put(f, &header, sizeof(header));
	assert_records(f, "");
	header.size = 7;
	put(f, &header, sizeof(header));
	assert_records(f, "");
	header.size = 1000;
	put(f, &header, sizeof(header));
	assert_records(f, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_written),
		TEST(test_what_was_cleared_is_not_read),
		TEST(test_newest_first),
		TEST(test_the_overwritten_one_is_left_out),
		TEST(test_a_ring_that_is_just_full),
		TEST(test_round_and_round),
		TEST(test_one_that_is_too_large_is_skipped),
		TEST(test_a_broken_size_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
