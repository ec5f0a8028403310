/* SPDX-License-Identifier: MIT */
/* A file in a folder of its own, to be written with a sink and read back by others. */
#ifndef MTBPF_TESTS_SINK_FIXTURE_H
#define MTBPF_TESTS_SINK_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "fxt_reader.h"
#include "trace/sink.h"

#define DATA_SIZE 1000000

struct folder {
	char path[32];
	char file[64], old[80];
	char stderr_file[64];
	int stderr_fd; /* the real one, while it is redirected */
};

static inline int make_folder(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));

	strcpy(folder->path, "/tmp/test_sink.XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	snprintf(folder->file, sizeof(folder->file), "%s/out", folder->path);
	snprintf(folder->stderr_file, sizeof(folder->stderr_file), "%s/stderr", folder->path);
	*state = folder;
	return 0;
}

static inline void use_suffix(struct folder *folder, const char *suffix)
{
	snprintf(folder->file, sizeof(folder->file), "%s/out%s", folder->path, suffix);
	snprintf(folder->old, sizeof(folder->old), "%s.old", folder->file);
}

static inline int remove_folder(void **state)
{
	struct folder *folder = *state;

	unlink(folder->file);
	unlink(folder->old);
	unlink(folder->stderr_file);
	assert_int_equal(rmdir(folder->path), 0);
	free(folder);
	return 0;
}

static inline char *make_data(void)
{
	char *data = malloc(DATA_SIZE);

	for (size_t i = 0; i < DATA_SIZE; i++)
		data[i] = (char)(i * 7 % 251 + i / 5000);
	return data;
}

/* What does not shrink, so that compressed files meet limits too. */
static inline char *make_noise(void)
{
	char *data = malloc(DATA_SIZE);
	uint32_t state = 1;

	for (size_t i = 0; i < DATA_SIZE; i++) {
		state = state * 1664525 + 1013904223;
		data[i] = (char)(state >> 24);
	}
	return data;
}

/* In pieces of odd sizes, so that the buffer's ends fall inside them. */
static inline void write_data(struct sink *sink, const char *data)
{
	for (size_t at = 0, n = 1; at < DATA_SIZE; at += n, n = n * 3 % 100003 + 1)
		sink__write(sink, data + at, at + n < DATA_SIZE ? n : DATA_SIZE - at);
}

/* One gzip member, and nothing behind it: Perfetto keeps 32 MB for each. */
static inline size_t inflate_file(const char *path, char *out, size_t size)
{
	size_t len;
	char *packed = read_whole_file(path, &len);
	z_stream z = {.next_in = (Bytef *)packed,
		      .avail_in = (uInt)len,
		      .next_out = (Bytef *)out,
		      .avail_out = (uInt)size};

	assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END); /* the checksum is right, too */
	assert_int_equal(z.avail_in, 0);
	inflateEnd(&z);
	free(packed);
	return size - z.avail_out;
}

static inline size_t decompress_file(const char *path, char *out, size_t size)
{
	ZSTD_DCtx *dctx = ZSTD_createDCtx();
	size_t len, left = 1;
	char *packed = read_whole_file(path, &len);
	ZSTD_inBuffer from = {packed, len, 0};
	ZSTD_outBuffer to = {out, size, 0};

	while (from.pos < from.size && !ZSTD_isError(left))
		left = ZSTD_decompressStream(dctx, &to, &from);
	assert_int_equal(left, 0); /* the last frame is whole, and all checksums right */
	ZSTD_freeDCtx(dctx);
	free(packed);
	return to.pos;
}

#define FOLDER_TEST(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

#endif
