// SPDX-License-Identifier: MIT
/* A ring's bytes in several records of a perf.data file: which of them are one stream. */
#include "recording_fixture.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#include "capture/recording/perf_data.h"

#define AUXTRACE     71
#define AUXTRACE_LEN 48

/* A perf.data with one thread's stream, and where its AUXTRACE record stands, which is the last. */
struct file {
	uint8_t bytes[16384];
	size_t n, at, data_end;
	uint8_t stream[2048];
};

static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
				2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};

/* PSBs with times, and TNT packets that are all different, more or less. */
static void fill_stream(uint8_t *stream, size_t n)
{
	for (size_t i = 0; i < n; i++)
		stream[i] = (uint8_t)(4 + 2 * (i * 7919 % 97));
	for (size_t i = 100; i + 24 < n; i += 200) {
		memcpy(stream + i, psb, sizeof(psb));
		stream[i + 16] = 0x19;
		memset(stream + i + 17, (int)(i / 100), 7);
	}
}

static void find_auxtrace(struct file *file)
{
	struct perf_data_header header;
	struct perf_event_header record;

	memcpy(&header, file->bytes, sizeof(header));
	file->at = header.data.offset;
	file->data_end = header.data.offset + header.data.size;
	memcpy(&record, file->bytes + file->at, sizeof(record));
	while (record.type != AUXTRACE) {
		file->at += record.size;
		assert_true(record.size && file->at < file->data_end);
		memcpy(&record, file->bytes + file->at, sizeof(record));
	}
}

static int set_up(void **state)
{
	struct file *file = calloc(1, sizeof(*file));
	struct rec_aux aux = {.pid = 100, .tid = 100, .tsc = 1, .size = sizeof(file->stream)};
	FILE *out = tmpfile();
	struct recording rec;

	fill_stream(file->stream, sizeof(file->stream));
	recording__fill(&rec, 0);
	aux.data = malloc(aux.size);
	memcpy(aux.data, file->stream, aux.size);
	assert_int_equal(recording__add_aux(&rec, &aux), 0);
	perf_data__write(&rec, out);
	recording__fini(&rec);
	fseek(out, 0, SEEK_END);
	file->n = (size_t)ftell(out);
	assert_true(file->n < sizeof(file->bytes));
	rewind(out);
	assert_int_equal(fread(file->bytes, 1, file->n, out), file->n);
	fclose(out);
	find_auxtrace(file);
	*state = file;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

/* One record's bytes: [from, from + n) of the stream. */
struct piece {
	size_t from, n;
	uint64_t offset;
};

static size_t put_piece(const struct file *file, uint8_t *at, const struct piece *piece)
{
	uint64_t size = (piece->n + 7) & ~7ull;

	memcpy(at, file->bytes + file->at, AUXTRACE_LEN);
	memcpy(at + 8, &size, 8);
	memcpy(at + 16, &piece->offset, 8);
	memset(at + AUXTRACE_LEN, 0, size);
	memcpy(at + AUXTRACE_LEN, file->stream + piece->from, piece->n);
	return AUXTRACE_LEN + size;
}

static uint8_t bytes[65536];

/* The file with these records in the place of its one: its size. */
static size_t put_pieces(const struct file *file, const struct piece *pieces, size_t n)
{
	struct perf_data_header header;
	size_t at = file->at;

	memcpy(bytes, file->bytes, file->at);
	for (size_t i = 0; i < n; i++)
		at += put_piece(file, bytes + at, &pieces[i]);
	memcpy(&header, bytes, sizeof(header));
	header.data.size = at - header.data.offset;
	memset(header.features, 0, sizeof(header.features));
	memcpy(bytes, &header, sizeof(header));
	return at;
}

static void read_pieces(const struct file *file, const struct piece *pieces, size_t n,
			struct recording *rec)
{
	size_t size = put_pieces(file, pieces, n);
	const char *why;

	recording__init(rec);
	assert_int_equal(perf_data__read(rec, bytes, size, &why), 0);
}

/* As from a file that nobody may write. */
static void read_mapped(const struct file *file, const struct piece *pieces, size_t n,
			struct recording *rec)
{
	size_t size = put_pieces(file, pieces, n);
	const char *why;

	recording__init(rec);
	rec->mapped.size = size;
	rec->mapped.data =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(rec->mapped.data, MAP_FAILED);
	memcpy(rec->mapped.data, bytes, size);
	mprotect(rec->mapped.data, size, PROT_READ);
	assert_int_equal(perf_data__read(rec, rec->mapped.data, size, &why), 0);
}

static void expect_stream(const struct file *file, const struct recording *rec, size_t from,
			  size_t to)
{
	assert_int_equal(rec->aux.n, 1);
	assert_in_range(rec->aux.v[0].size, to - from, to - from + 7);
	assert_memory_equal(rec->aux.v[0].data, file->stream + from, to - from);
}

/* Full trace: wherever the ring was emptied, in the middle of a packet and of a PSB. */
static void test_pieces_of_a_whole_trace(void **state)
{
	const struct piece pieces[] = {
		{0, 104, 8}, {104, 1000, 112}, {1104, 8, 1112}, {1112, 936, 1120}};
	struct file *file = *state;
	struct recording rec;

	read_pieces(file, pieces, 4, &rec);
	expect_stream(file, &rec, 0, sizeof(file->stream));
	recording__fini(&rec);
}

/* It is as large as a recording can be: nobody waits for a copy. */
static void test_a_whole_trace_stays_in_its_file(void **state)
{
	const struct piece pieces[] = {{0, 2048, 8}};
	struct file *file = *state;
	struct recording rec;

	read_mapped(file, pieces, 1, &rec);
	expect_stream(file, &rec, 0, sizeof(file->stream));
	assert_in_range((uintptr_t)rec.aux.v[0].data, (uintptr_t)rec.mapped.data,
			(uintptr_t)rec.mapped.data + rec.mapped.size);
	recording__fini(&rec);
}

/* A record without any bytes begins no stream that the next could go on. */
static void test_an_empty_piece(void **state)
{
	const struct piece pieces[] = {{0, 0, 8}, {0, 2048, 8}};
	struct file *file = *state;
	struct recording rec;

	read_pieces(file, pieces, 2, &rec);
	expect_stream(file, &rec, 0, sizeof(file->stream));
	recording__fini(&rec);
}

static void test_pieces_in_a_file_become_one(void **state)
{
	const struct piece pieces[] = {{0, 104, 8}, {104, 1000, 112}, {1104, 944, 1112}};
	struct file *file = *state;
	struct recording rec;

	read_mapped(file, pieces, 3, &rec);
	expect_stream(file, &rec, 0, sizeof(file->stream));
	recording__fini(&rec);
}

/* Whole words are written: what is not full of one comes again. */
static void test_padding_comes_again(void **state)
{
	const struct piece pieces[] = {{0, 101, 8}, {101, 1947, 109}};
	struct file *file = *state;
	struct recording rec;

	read_pieces(file, pieces, 2, &rec);
	expect_stream(file, &rec, 0, sizeof(file->stream));
	recording__fini(&rec);
}

/* Snapshots of a ring that was full: the offsets tell nothing. */
static void test_snapshots_that_overlap(void **state)
{
	const struct piece pieces[] = {
		{0, 1024, -512ull}, {600, 1024, -300ull}, {1024, 1024, -8ull}};
	struct file *file = *state;
	struct recording rec;

	read_pieces(file, pieces, 3, &rec);
	expect_stream(file, &rec, 0, sizeof(file->stream));
	recording__fini(&rec);
}

static void test_a_snapshot_that_holds_the_last_one(void **state)
{
	const struct piece pieces[] = {{600, 512, -512ull}, {104, 1944, -300ull}};
	struct file *file = *state;
	struct recording rec;

	/* What lies before its beginning is lost: it begins at another PSB. */
	read_pieces(file, pieces, 2, &rec);
	assert_int_equal(rec.aux.n, 2);
	recording__fini(&rec);
}

static void test_snapshots_apart(void **state)
{
	const struct piece pieces[] = {{0, 800, -512ull}, {808, 1240, -300ull}};
	struct file *file = *state;
	struct recording rec;

	read_pieces(file, pieces, 2, &rec);
	assert_int_equal(rec.aux.n, 2);
	assert_int_equal(rec.aux.v[0].size, 800);
	assert_int_equal(rec.aux.v[1].size, 1240);
	recording__fini(&rec);
}

/* Nothing but PSBs: every place looks like every other. */
static void test_streams_that_nobody_recorded(void **state)
{
	const struct piece pieces[] = {{0, 2040, -512ull}, {0, 2048, -300ull}};
	struct file *file = *state;
	struct recording rec;

	for (size_t i = 0; i < sizeof(file->stream); i++)
		file->stream[i] = i & 1 ? 0x82 : 2;
	file->stream[2039] = 0x44;
	read_pieces(file, pieces, 2, &rec);
	assert_in_range(rec.aux.n, 1, 2);
	recording__fini(&rec);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_pieces_of_a_whole_trace),
		TEST(test_a_whole_trace_stays_in_its_file),
		TEST(test_an_empty_piece),
		TEST(test_pieces_in_a_file_become_one),
		TEST(test_padding_comes_again),
		TEST(test_snapshots_that_overlap),
		TEST(test_a_snapshot_that_holds_the_last_one),
		TEST(test_snapshots_apart),
		TEST(test_streams_that_nobody_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
