// SPDX-License-Identifier: MIT
/* Files of many blocks, which several threads compress. */
#include "sink_fixture.h"

#include <sys/stat.h>

/* More than the blocks that are under way at once, and all of them in order. */
static void expect_long_file(struct folder *folder, const char *suffix,
			     size_t (*read_back)(const char *path, char *out, size_t size))
{
	const size_t rounds = 30, size = rounds * DATA_SIZE;
	char *data = make_data(), *noise = make_noise(), *found = malloc(2 * size);
	struct sink *sink;
	uint64_t bytes;
	struct stat st;

	use_suffix(folder, suffix);
	sink = sink__open(folder->file);
	for (size_t i = 0; i < rounds; i++)
		write_data(sink, i % 3 ? data : noise);
	assert_int_equal(sink__close(sink, &bytes), 0);
	assert_int_equal(stat(folder->file, &st), 0);
	assert_int_equal(bytes, st.st_size);
	assert_int_equal(read_back(folder->file, found, 2 * size), size);
	for (size_t i = 0; i < rounds; i++)
		assert_memory_equal(found + i * DATA_SIZE, i % 3 ? data : noise, DATA_SIZE);
	free(found);
	free(noise);
	free(data);
}

static size_t read_file(const char *path, char *out, size_t size)
{
	size_t len;
	char *data = read_whole_file(path, &len);

	memcpy(out, data, len < size ? len : size);
	free(data);
	return len;
}

static void test_long_files(void **state)
{
	expect_long_file(*state, ".fxt", read_file);
	unlink(((struct folder *)*state)->file);
	expect_long_file(*state, ".fxt.gz", inflate_file);
	unlink(((struct folder *)*state)->file);
	expect_long_file(*state, ".fxt.zst", decompress_file);
}

/* Bytes made in place, in pieces that do not fill the room asked for. */
static void test_room(void **state)
{
	struct folder *folder = *state;
	const size_t n = 5000;
	struct sink *sink = sink__open(folder->file);
	size_t len;
	char *found;

	for (size_t i = 0; i < n; i++) {
		memset(sink__room(sink, SINK_MAX_ROOM), (int)(i % 251), SINK_MAX_ROOM);
		sink__use_room(sink, 1000);
	}
	assert_int_equal(sink__close(sink, NULL), 0);
	found = read_whole_file(folder->file, &len);
	assert_int_equal(len, 1000 * n);
	for (size_t i = 0; i < len; i++)
		assert_int_equal((unsigned char)found[i], i / 1000 % 251);
	free(found);
}

static void test_abort_of_a_long_file(void **state)
{
	struct folder *folder = *state;
	char *data = make_noise();
	struct sink *sink;

	use_suffix(folder, ".fxt.gz");
	sink = sink__open(folder->file);
	for (int i = 0; i < 10; i++)
		write_data(sink, data);
	sink__abort(sink);
	assert_int_equal(access(folder->file, F_OK), -1);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_long_files),
		FOLDER_TEST(test_room),
		FOLDER_TEST(test_abort_of_a_long_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
