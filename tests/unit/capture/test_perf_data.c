// SPDX-License-Identifier: MIT
/* perf.data files that are cut or changed: an error, or what is left; never a crash. */
#include "recording_fixture.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "capture/recording/perf_data.h"

struct file {
	uint8_t *bytes;
	size_t n;
};

static int make_file(void **state, struct recording *rec)
{
	struct file *file = calloc(1, sizeof(*file));
	FILE *out = tmpfile();

	perf_data__write(rec, out);
	recording__fini(rec);
	assert_false(ferror(out));
	fseek(out, 0, SEEK_END);
	file->n = (size_t)ftell(out);
	file->bytes = malloc(file->n);
	rewind(out);
	assert_int_equal(fread(file->bytes, 1, file->n, out), file->n);
	fclose(out);
	*state = file;
	return 0;
}

static int set_up(void **state)
{
	struct recording rec;

	recording__fill(&rec, 5);
	return make_file(state, &rec);
}

static int set_up_by_cpu(void **state)
{
	struct recording rec;

	recording__fill_by_cpu(&rec);
	return make_file(state, &rec);
}

static int set_up_with_stacks(void **state)
{
	struct recording rec;

	recording__fill(&rec, 1);
	add_hit_with_stack(&rec, 3, 100);
	add_hit_with_stack(&rec, MT_STACK_DEPTH, 64);
	return make_file(state, &rec);
}

static int tear_down(void **state)
{
	struct file *file = *state;

	free(file->bytes);
	free(file);
	return 0;
}

/* From memory of exactly this size, so that reading past it shows. */
static int read_bytes(const uint8_t *bytes, size_t n, struct recording *rec)
{
	uint8_t *copy = malloc(n ? n : 1);
	const char *why = NULL;
	int err;

	if (n)
		memcpy(copy, bytes, n);
	recording__init(rec);
	err = perf_data__read(rec, copy, n, &why);
	if (err)
		assert_non_null(why);
	free(copy);
	return err;
}

static void test_whole(void **state)
{
	struct file *file = *state;
	struct recording rec;

	assert_int_equal(read_bytes(file->bytes, file->n, &rec), 0);
	assert_int_equal(rec.threads.n, 5);
	assert_int_equal(rec.pt.cpu_model, 142);
	recording__fini(&rec);
}

static void test_cut_anywhere(void **state)
{
	struct file *file = *state;

	for (size_t n = 0; n < file->n; n += 8) {
		struct recording rec;

		assert_int_equal(read_bytes(file->bytes, n, &rec), -EINVAL);
		recording__fini(&rec);
	}
}

static void mutate(struct file *file, uint8_t *copy, unsigned int *seed)
{
	size_t at = (size_t)rand_r(seed) % file->n;
	size_t word = at / 8 * 8;

	/* Most of the file is one long path and stacks: go where the structure is more often. */
	if (rand_r(seed) % 2)
		at = word = (size_t)rand_r(seed) % (file->n < 1024 ? file->n / 8 : 128) * 8;
	switch (rand_r(seed) % 5) {
	case 0:
		copy[at] = (uint8_t)rand_r(seed);
		break;
	case 1:
		copy[at] ^= (uint8_t)(1u << rand_r(seed) % 8);
		break;
	case 2:
		if (word + 8 <= file->n)
			memset(copy + word, rand_r(seed) % 2 ? 0xff : 0, 8);
		break;
	case 3:
		if (word + 8 <= file->n)
			memcpy(copy + word, &(uint64_t){(uint64_t)rand_r(seed) % (2 * file->n)}, 8);
		break;
	default:
		memmove(copy + at, copy + (size_t)rand_r(seed) % (at + 1) / 2, (file->n - at) / 2);
		break;
	}
}

static void test_mutated(void **state)
{
	struct file *file = *state;
	uint8_t *copy = malloc(file->n);
	unsigned int seed = 17, failed = 0;

	for (int round = 0; round < 6000; round++) {
		struct recording rec;
		int err;

		memcpy(copy, file->bytes, file->n);
		for (int i = rand_r(&seed) % 3; i >= 0; i--)
			mutate(file, copy, &seed);
		err = read_bytes(
			copy, rand_r(&seed) % 4 ? file->n : (size_t)rand_r(&seed) % file->n, &rec);
		assert_true(err == 0 || err == -EINVAL || err == -ENODATA || err == -ENOTSUP);
		failed += err != 0;
		for (size_t i = 0; i < rec.hits.n; i++)
			assert_true(rec.hits.v[i].stack_depth <= MT_STACK_DEPTH);
		for (size_t i = 0; i < rec.stacks.n; i++)
			assert_true(rec.stacks.v[i].hit < rec.hits.n &&
				    rec.stacks.v[i].size < UINT16_MAX);
		recording__fini(&rec);
	}
	assert_in_range(failed, 1000, 5900);
	free(copy);
}

/* Every event claims the whole file as its ids. */
static void test_ids_that_overlap_cost_no_memory(void **state)
{
	enum { N = 4000 };
	const size_t entry = 64 + sizeof(struct perf_data_section);
	struct perf_data_header header = {.magic = PERF_DATA_MAGIC,
					  .size = sizeof(header),
					  .attr_size = entry,
					  .attrs = {sizeof(header), N * entry}};
	size_t n = sizeof(header) + N * entry;
	struct perf_data_section all = {0, n};
	uint8_t *bytes = calloc(1, n);
	struct recording rec;

	memcpy(bytes, &header, sizeof(header));
	for (size_t i = 0; i < N; i++)
		memcpy(bytes + sizeof(header) + i * entry + 64, &all, sizeof(all));
	assert_int_equal(read_bytes(bytes, n, &rec), -EINVAL);
	recording__fini(&rec);
	free(bytes);
}

#define TEST(name)	       cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_WITH_STACKS(name) cmocka_unit_test_setup_teardown(name, set_up_with_stacks, tear_down)
#define TEST_BY_CPU(name)      cmocka_unit_test_setup_teardown(name, set_up_by_cpu, tear_down)

/* struct perf_record_header_build_id, and its file's name */
static size_t put_build_id(uint8_t *out, const char *path, uint8_t first, uint16_t misc)
{
	size_t n = 36 + strlen(path) + 1;
	struct perf_event_header header = {.type = 67, .misc = misc, .size = (uint16_t)n};

	memset(out, 0, n);
	memcpy(out, &header, sizeof(header));
	for (uint8_t i = 0; i < 20; i++)
		out[12 + i] = (uint8_t)(first + i);
	out[32] = 3;
	strcpy((char *)out + 36, path);
	return n;
}

static void test_build_ids_of_the_header(void **state)
{
	struct rec_map maps[] = {{.path = "/bin/a"}, {.path = "/bin/b"}, {.path = "/bin/a"}};
	struct recording rec;
	uint8_t bytes[256];
	size_t n, whole;

	recording__init(&rec);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(recording__add_map(&rec, &maps[i]), 0);
	n = put_build_id(bytes, "/bin/a", 0xf0, 0);
	n += put_build_id(bytes + n, "/bin/a", 0x10, 0);
	whole = n + put_build_id(bytes + n, "/bin/b", 0x20, 1u << 15);
	/* One that is cut is none. */
	perf_data__read_build_ids(&rec, bytes, whole - 1);
	assert_string_equal(rec.maps.v[0].build_id, "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff00010203");
	assert_string_equal(rec.maps.v[2].build_id, rec.maps.v[0].build_id);
	assert_string_equal(rec.maps.v[1].build_id, "");
	perf_data__read_build_ids(&rec, bytes, whole);
	assert_string_equal(rec.maps.v[1].build_id, "202122");
	recording__fini(&rec);
}

/* What is written is read again: by path, of two files of one path the first. */
static void test_build_ids_are_written(void **state)
{
	static const char id[] = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff00010203";
	struct rec_file files[] = {{.path = "/bin/a", .fd = -1, .debug_fd = -1},
				   {.path = "/bin/b", .fd = -1, .debug_fd = -1},
				   {.path = "/bin/a", .fd = -1, .debug_fd = -1},
				   {.path = "/bin/c", .fd = -1, .debug_fd = -1}};
	struct rec_map maps[] = {{.path = "/bin/a"}, {.path = "/bin/b"}, {.path = "/bin/c"}};
	struct recording rec;
	uint8_t bytes[1024];
	FILE *out = fmemopen(bytes, sizeof(bytes), "w");
	size_t n;

	recording__init(&rec);
	strcpy(files[0].build_id, id);
	strcpy(files[1].build_id, "abcd");
	strcpy(files[2].build_id, "ef");
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(recording__add_file(&rec, &files[i]), 0);
	perf_data__write_build_ids(&rec, out);
	n = (size_t)ftell(out);
	fclose(out);
	/* Two of 36 bytes and a name of 64. */
	assert_int_equal(n, 200);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(recording__add_map(&rec, &maps[i]), 0);
	perf_data__read_build_ids(&rec, bytes, n);
	assert_string_equal(rec.maps.v[0].build_id, id);
	assert_string_equal(rec.maps.v[1].build_id, "abcd");
	assert_string_equal(rec.maps.v[2].build_id, "");
	recording__fini(&rec);
}

/* perf record --buildid-mmap: the id where the device and the inode would be. */
static void test_build_ids_of_mappings(void **state)
{
	struct file *file = *state;
	struct perf_data_header header;
	struct recording rec;
	size_t at, n = 0;

	memcpy(&header, file->bytes, sizeof(header));
	for (at = header.data.offset; at < header.data.offset + header.data.size;) {
		struct perf_event_header *record = (void *)(file->bytes + at);

		if (record->type == 71) /* AUXTRACE: its data follows */
			break;
		if (record->type == PERF_RECORD_MMAP2) {
			record->misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
			memset(file->bytes + at + 40, 0xab, 24);
			file->bytes[at + 40] = n++ ? 21 : 4;
		}
		at += record->size;
	}
	assert_true(n > 1);
	assert_int_equal(read_bytes(file->bytes, file->n, &rec), 0);
	assert_string_equal(rec.maps.v[0].build_id, "abababab");
	assert_int_equal(rec.maps.v[0].ino, 0);
	assert_string_equal(rec.maps.v[1].build_id, "");
	recording__fini(&rec);
}

/* A thread that began just before the freeze: what is not in the file is not in memory either. */
static void test_nothing_is_kept_of_who_wrote_no_trace(void **state)
{
	struct rec_aux aux = {.pid = 100, .tid = 101, .tsc = 1, .data = malloc(1)};
	struct recording rec;

	recording__init(&rec);
	assert_int_equal(recording__add_aux(&rec, &aux), 0);
	assert_int_equal(rec.aux.n, 0);
	recording__fini(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole),
		TEST(test_cut_anywhere),
		TEST(test_mutated),
		TEST_BY_CPU(test_cut_anywhere),
		TEST_BY_CPU(test_mutated),
		TEST_WITH_STACKS(test_cut_anywhere),
		TEST_WITH_STACKS(test_mutated),
		TEST(test_ids_that_overlap_cost_no_memory),
		cmocka_unit_test(test_nothing_is_kept_of_who_wrote_no_trace),
		cmocka_unit_test(test_build_ids_of_the_header),
		cmocka_unit_test(test_build_ids_are_written),
		TEST(test_build_ids_of_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
