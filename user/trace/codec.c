// SPDX-License-Identifier: MIT
#include "trace/codec.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "util/meter.h"
#include "util/text.h"
#include "util/vec.h"

/*
 * zlib's level 3 makes traces 4 % smaller than level 2 and takes 25 % longer; level 1 is not faster
 * than 2.
 */
#define GZIP_LEVEL 2
#define ZSTD_LEVEL 3
/*
 * Negative: deflateInit2() writes no header and no trailer per block (zlib.h). The file has one of
 * each.
 */
#define GZIP_WINDOW (-MAX_WBITS)
/* More bytes than a flush adds at the end of a block (Z_SYNC_FLUSH ends it at a whole byte). */
#define GZIP_FLUSH 64

static void *gzip__new(void)
{
	z_stream *z = calloc(1, sizeof(*z));

	if (!z ||
	    deflateInit2(z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK)
		return z;
	free(z);
	return NULL;
}

static void gzip__free(void *state)
{
	if (state)
		deflateEnd(state);
	free(state);
}

static size_t gzip__bound(size_t n)
{
	return compressBound(n) + GZIP_FLUSH;
}

static ssize_t gzip__encode(void *state, const void *data, size_t n, void *out, size_t size)
{
	z_stream *z = state;

	deflateReset(z);
	z->next_in = (Bytef *)(uintptr_t)data;
	z->avail_in = (uInt)n;
	z->next_out = out;
	z->avail_out = (uInt)size;
	return deflate(z, Z_SYNC_FLUSH) == Z_OK && z->avail_out ? (ssize_t)(size - z->avail_out)
								: -EIO;
}

/* RFC 1952, 2.3: method deflate, no flags, no time, no extra flags, made on Unix. */
static size_t gzip__head(uint8_t *out)
{
	static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};

	memcpy(out, head, sizeof(head));
	return sizeof(head);
}

static uint32_t gzip__check(const void *data, size_t n)
{
	return (uint32_t)crc32(0, data, (uInt)n);
}

static uint32_t gzip__join(uint32_t before, uint32_t check, size_t n)
{
	return (uint32_t)crc32_combine(before, check, (z_off_t)n);
}

/* RFC 1951, 3.2.6: an empty last block. RFC 1952: the CRC, and the lower 32 bits of the size. */
static size_t gzip__tail(uint32_t check, uint64_t n, uint8_t *out)
{
	static const uint8_t last[] = {0x03, 0x00};
	const uint32_t trailer[] = {htole32(check), htole32((uint32_t)n)};

	memcpy(out, last, sizeof(last));
	memcpy(out + sizeof(last), trailer, sizeof(trailer));
	return sizeof(last) + sizeof(trailer);
}

static void *zstd__new(void)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	if (!zstd)
		return NULL;
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	return zstd;
}

static void zstd__free(void *state)
{
	ZSTD_freeCCtx(state);
}

static ssize_t zstd__encode(void *state, const void *data, size_t n, void *out, size_t size)
{
	size_t len = ZSTD_compress2(state, out, size, data, n);

	return ZSTD_isError(len) ? -EIO : (ssize_t)len;
}

const struct codec *codec__of(const char *path)
{
	static const struct codec codecs[] = {
		{".gz", gzip__new, gzip__free, gzip__bound, gzip__encode, gzip__head, gzip__check,
		 gzip__join, gzip__tail},
		{".zst", zstd__new, zstd__free, ZSTD_compressBound, zstd__encode, NULL, NULL, NULL,
		 NULL},
	};

	return ARRAY_FIND(codecs, e, text__ends_in(path, e->suffix));
}

const char *codec__zlib_version(void)
{
	return zlibVersion();
}

const char *codec__zstd_version(void)
{
	return ZSTD_versionString();
}

/* Asks zlib for gzip's header and trailer, and nothing else (zlib.h, inflateInit2). */
#define UNPACK_GZIP_WINDOW (15 + 16)

struct unpack {
	int fd;
	off_t offset; /* used instead of fd's own offset, since others may read the same file */
	enum packing packing;
	struct meter *meter;
	z_stream gzip;
	ZSTD_DStream *zstd;
	bool at_end, in_frame; /* at the file's end; inside a gzip member or zstd frame */
	size_t at, n;	       /* buffer[at..n) has not been unpacked */
	unsigned char buffer[256 * 1024];
};

enum packing packing__of(int fd)
{
	static const unsigned char gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
	unsigned char magic[sizeof(zstd)] = {0};

	if (pread(fd, magic, sizeof(magic), 0) < (ssize_t)sizeof(magic))
		return PACKED_NOT;
	if (!memcmp(magic, gzip, sizeof(gzip)))
		return PACKED_GZIP;
	return memcmp(magic, zstd, sizeof(zstd)) ? PACKED_NOT : PACKED_ZSTD;
}

struct unpack *unpack__open(int fd)
{
	struct unpack *unpack = calloc(1, sizeof(*unpack));
	int err = ENOMEM;

	if (!unpack)
		goto fail;
	unpack->packing = packing__of(fd);
	unpack->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (unpack->fd < 0) {
		err = errno;
		goto fail;
	}
	if (unpack->packing == PACKED_ZSTD)
		unpack->zstd = ZSTD_createDStream();
	if (unpack->packing == PACKED_ZSTD && !unpack->zstd)
		goto fail;
	if (unpack->packing == PACKED_GZIP &&
	    inflateInit2(&unpack->gzip, UNPACK_GZIP_WINDOW) != Z_OK)
		goto fail;
	return unpack;
fail:
	unpack__free(unpack);
	errno = err;
	return NULL;
}

void unpack__free(struct unpack *unpack)
{
	if (!unpack)
		return;
	if (unpack->packing == PACKED_GZIP)
		inflateEnd(&unpack->gzip);
	ZSTD_freeDStream(unpack->zstd);
	if (unpack->fd > 0)
		close(unpack->fd);
	free(unpack);
}

void unpack__count(struct unpack *unpack, struct meter *meter)
{
	unpack->meter = meter;
	meter__add(meter, (uint64_t)unpack->offset);
}

static int fill(struct unpack *unpack)
{
	ssize_t n;

	do
		n = pread(unpack->fd, unpack->buffer, sizeof(unpack->buffer), unpack->offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	unpack->offset += n;
	meter__add(unpack->meter, (uint64_t)n);
	unpack->at = 0;
	unpack->n = (size_t)n;
	unpack->at_end = !n;
	return 0;
}

/*
 * inflate_some() and decompress_some() take bytes from the buffer and append to `data`, of whose
 * `size` bytes *done are filled.
 */
static int inflate_some(struct unpack *unpack, unsigned char *data, size_t size, size_t *done)
{
	z_stream *gzip = &unpack->gzip;
	int status;

	gzip->next_in = &unpack->buffer[unpack->at];
	gzip->avail_in = (unsigned int)(unpack->n - unpack->at);
	gzip->next_out = &data[*done];
	gzip->avail_out = size - *done < UINT32_MAX ? (unsigned int)(size - *done) : UINT32_MAX;
	unpack->in_frame = true;
	status = inflate(gzip, Z_NO_FLUSH);
	if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
		return status == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	unpack->at = unpack->n - gzip->avail_in;
	*done = (size_t)(gzip->next_out - data);
	if (status == Z_STREAM_END) {
		unpack->in_frame = false;
		inflateReset(gzip);
	}
	return 0;
}

static int decompress_some(struct unpack *unpack, unsigned char *data, size_t size, size_t *done)
{
	ZSTD_inBuffer in = {unpack->buffer, unpack->n, unpack->at};
	ZSTD_outBuffer out = {data, size, *done};
	size_t left = ZSTD_decompressStream(unpack->zstd, &out, &in);

	if (ZSTD_isError(left))
		return -EBADMSG;
	unpack->at = in.pos;
	*done = out.pos;
	unpack->in_frame = left != 0;
	return 0;
}

/*
 * Unpacks some bytes into `data`, perhaps none. A decompressor keeps output that did not fit, so
 * more may come after the file's end. 0 or -errno.
 */
static int read_some(struct unpack *unpack, unsigned char *data, size_t size, size_t *done)
{
	size_t before = *done, n;
	int err = 0;

	if (unpack->at == unpack->n && !unpack->at_end)
		err = fill(unpack);
	if (err || (unpack->at_end && !unpack->in_frame))
		return err;
	switch (unpack->packing) {
	case PACKED_GZIP:
		err = inflate_some(unpack, data, size, done);
		break;
	case PACKED_ZSTD:
		err = decompress_some(unpack, data, size, done);
		break;
	case PACKED_NOT:
		n = unpack->n - unpack->at;
		n = n < size - *done ? n : size - *done;
		memcpy(&data[*done], &unpack->buffer[unpack->at], n);
		unpack->at += n;
		*done += n;
	}
	if (!err && unpack->at_end && *done == before)
		return -EBADMSG;
	return err;
}

ssize_t unpack__read(struct unpack *unpack, void *data, size_t size)
{
	size_t done = 0;
	int err = 0;

	while (!err && done < size && !(unpack->at_end && !unpack->in_frame))
		err = read_some(unpack, data, size, &done);
	return done ? (ssize_t)done : err;
}
