// SPDX-License-Identifier: MIT
/* Hits with a copy of the stack: what is written is read back, by perf's own rules. */
#include "recording_dir_fixture.h"

#include <linux/perf_event.h>

#include "capture/code/live_code.h"
#include "capture/recording/perf_data.h"

static void forget_hits(struct recording *rec)
{
	rec->hits.n = 0;
}

static void assert_same_hits(const struct fixture *f)
{
	assert_int_equal(f->rec.hits.n, f->back.hits.n);
	for (size_t i = 0; i < f->rec.hits.n; i++) {
		struct rec_user a = recording__hit_user(&f->rec, &f->rec.hits.v[i]);
		struct rec_user b = recording__hit_user(&f->back, &f->back.hits.v[i]);

		assert_memory_equal(&f->rec.hits.v[i], &f->back.hits.v[i], sizeof(struct mt_hit));
		assert_int_equal(a.stack != NULL, b.stack != NULL);
		assert_int_equal(a.size, b.size);
		if (a.stack)
			assert_memory_equal(a.stack, b.stack, a.size);
	}
}

static void test_stacks_are_read_back(void **state)
{
	struct fixture *f = *state;

	/* Those of the fixture have none. */
	add_hit_with_stack(&f->rec, 3, 4096);
	add_hit_with_stack(&f->rec, 0, 8);
	add_hit_with_stack(&f->rec, 1, 0);
	add_hit_with_stack(&f->rec, MT_STACK_DEPTH, 1);
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.stacks.n, 3);
	assert_same_hits(f);
	assert_string_equal(f->said.text, "");
}

/* A record's size has 16 bits. */
static void test_the_largest_record(void **state)
{
	struct fixture *f = *state;

	forget_hits(&f->rec);
	add_hit_with_stack(&f->rec, MT_STACK_DEPTH, MT_COPY_MAX);
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_same_hits(f);
}

/* The last of the file's events, and all of its data. */
static struct perf_event_attr hits_attr(const uint8_t *file)
{
	struct perf_data_header header;
	struct perf_event_attr attr = {0};

	memcpy(&header, file, sizeof(header));
	memcpy(&attr, file + header.attrs.offset + header.attrs.size - header.attr_size,
	       PERF_DATA_ATTR_SIZE);
	return attr;
}

static struct perf_event_attr written_attr(struct fixture *f)
{
	struct perf_event_attr attr;
	char path[PATH_MAX], *data;
	size_t size;

	write_it(f);
	snprintf(path, sizeof(path), "%s/data", f->path);
	assert_int_equal(fs__read(path, &data, &size), 0);
	attr = hits_attr((uint8_t *)data);
	free(data);
	return attr;
}

/* perf unwinds where an event has both, and would show a chain by frame pointer in front of it. */
static void test_perf_is_told(void **state)
{
	struct fixture *f = *state;
	struct perf_event_attr attr;

	attr = written_attr(f);
	assert_false(attr.sample_type & (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER));
	assert_true(attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	add_hit_with_stack(&f->rec, 3, 64);
	attr = written_attr(f);
	assert_true(attr.sample_type & PERF_SAMPLE_REGS_USER);
	assert_true(attr.sample_type & PERF_SAMPLE_STACK_USER);
	assert_int_equal(attr.sample_regs_user, PERF_HIT_REGS);
	assert_int_equal(attr.sample_stack_user % 8, 0);
}

/* The hit's record of a file that has one hit. */
static uint8_t *find_sample(uint8_t *file, size_t *size)
{
	struct perf_data_header header;

	memcpy(&header, file, sizeof(header));
	for (size_t at = header.data.offset;;) {
		struct perf_event_header record;

		memcpy(&record, file + at, sizeof(record));
		if (record.type == PERF_RECORD_SAMPLE) {
			*size = record.size;
			return file + at;
		}
		at += record.size;
	}
}

/* Where in the sample the number of stack bytes stands, and behind the bytes, how many count. */
static void test_sizes_that_lie(void **state)
{
	static const uint64_t lies[] = {9,	    72,		UINT16_MAX,    1ull << 32,
					1ull << 63, UINT64_MAX, UINT64_MAX - 7};
	struct fixture *f = *state;
	char path[PATH_MAX], *data;
	size_t size, record;
	uint8_t *sample;

	forget_hits(&f->rec);
	add_hit_with_stack(&f->rec, 3, 64);
	write_it(f);
	snprintf(path, sizeof(path), "%s/data", f->path);
	assert_int_equal(fs__read(path, &data, &size), 0);
	sample = find_sample((uint8_t *)data, &record);
	for (size_t i = 0; i < 2 * sizeof(lies) / sizeof(lies[0]); i++) {
		uint8_t *at = sample + record - (i % 2 ? 8 : 80);
		uint64_t truth;

		memcpy(&truth, at, 8);
		assert_int_equal(truth, 64);
		memcpy(at, &lies[i / 2], 8);
		if (i % 2 == 1 && lies[i / 2] <= 64)
			memcpy(at, &(uint64_t){65}, 8);
		write_file(f, "data", data, size);
		assert_int_equal(read_it(f), -EINVAL);
		ASSERT_SAID(f, TEXT_damaged_hit);
		memcpy(at, &truth, 8);
	}
	free(data);
}

/* A chain in front of what perf unwinds would show each caller twice. */
static void test_no_chain_beside_a_stack(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX], *data;
	uint64_t depth;
	size_t size, record;

	forget_hits(&f->rec);
	add_hit_with_stack(&f->rec, 3, 64);
	write_it(f);
	snprintf(path, sizeof(path), "%s/data", f->path);
	assert_int_equal(fs__read(path, &data, &size), 0);
	/* Behind the header, IDENTIFIER, IP, TID, TIME, CPU. */
	memcpy(&depth, find_sample((uint8_t *)data, &record) + 48, sizeof(depth));
	assert_int_equal(depth, 1);
	free(data);
}

/* They are for perf; as code they would hide what lies there. */
static void test_data_is_not_read_as_code(void **state)
{
	struct fixture *f = *state;
	size_t before;

	write_it(f);
	assert_int_equal(read_it(f), 0);
	before = f->back.maps.n;
	assert_int_equal(code_files__note(&f->rec, getpid()), 0);
	assert_int_equal(data_maps__take(&f->rec, getpid()), 0);
	assert_true(f->rec.data_maps.n > 3);
	for (size_t i = 0; i < f->rec.data_maps.n; i++)
		assert_non_null(recording__find_file(&f->rec, f->rec.data_maps.v[i].path,
						     f->rec.data_maps.v[i].ino));
	/* A second look finds nothing new. */
	before += f->rec.data_maps.n;
	assert_int_equal(data_maps__take(&f->rec, getpid()), 0);
	before -= f->rec.data_maps.n;
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.maps.n, before);
}

static void test_a_hit_of_another_recording_has_no_stack(void **state)
{
	struct fixture *f = *state;
	struct mt_hit other;

	add_hit_with_stack(&f->rec, 3, 64);
	other = f->rec.hits.v[f->rec.hits.n - 1];
	assert_null(recording__hit_user(&f->rec, &other).stack);
	assert_null(recording__hit_user(&f->rec, &f->rec.hits.v[0]).stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_stacks_are_read_back),
		TEST(test_the_largest_record),
		TEST(test_perf_is_told),
		TEST(test_sizes_that_lie),
		TEST(test_no_chain_beside_a_stack),
		TEST(test_data_is_not_read_as_code),
		TEST(test_a_hit_of_another_recording_has_no_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
