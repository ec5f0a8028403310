// SPDX-License-Identifier: MIT
#include "trace/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"

#define IN_SIZE	 (64 * 1024)
#define OUT_SIZE (32 * 1024)

/* zlib's level 6 makes traces 7 % smaller than 3 does, and takes twice as long. */
#define GZIP_LEVEL 3
#define ZSTD_LEVEL 3

struct codec {
	const char *suffix;
	int (*init)(struct sink *sink);
	/* Compresses and emits; with `finish`, ends the stream. 0 or -errno. */
	int (*put)(struct sink *sink, const void *data, size_t len, bool finish);
	void (*fini)(struct sink *sink);
};

struct sink {
	const struct codec *codec;
	char *path;
	int fd;
	int err;
	uint64_t bytes;
	size_t used; /* of in */
	z_stream zlib;
	ZSTD_CCtx *zstd;
	uint8_t in[IN_SIZE];
	uint8_t out[OUT_SIZE];
};

static int emit(struct sink *sink, const void *data, size_t len)
{
	int err = fs__write_fd(sink->fd, data, len);

	if (!err)
		sink->bytes += len;
	return err;
}

static int plain__init(struct sink *sink)
{
	return 0;
}

static int plain__put(struct sink *sink, const void *data, size_t len, bool finish)
{
	return emit(sink, data, len);
}

static void plain__fini(struct sink *sink)
{
}

static int gzip__init(struct sink *sink)
{
	const int gzip_header = 16;

	/* zlib.h: deflateInit2: 16 added to windowBits writes gzip's header and trailer. */
	return deflateInit2(&sink->zlib, GZIP_LEVEL, Z_DEFLATED, MAX_WBITS + gzip_header, 8,
			    Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : -ENOMEM;
}

static int gzip__put(struct sink *sink, const void *data, size_t len, bool finish)
{
	z_stream *z = &sink->zlib;
	int rc, err;

	z->next_in = (Bytef *)(uintptr_t)data;
	z->avail_in = (uInt)len;
	do {
		z->next_out = sink->out;
		z->avail_out = OUT_SIZE;
		rc = deflate(z, finish ? Z_FINISH : Z_NO_FLUSH);
		if (rc == Z_STREAM_ERROR)
			return -EIO;
		err = emit(sink, sink->out, OUT_SIZE - z->avail_out);
		if (err)
			return err;
	} while (finish ? rc != Z_STREAM_END : !z->avail_out);
	return 0;
}

static void gzip__fini(struct sink *sink)
{
	deflateEnd(&sink->zlib);
}

static int zstd__init(struct sink *sink)
{
	sink->zstd = ZSTD_createCCtx();
	if (!sink->zstd)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(sink->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	ZSTD_CCtx_setParameter(sink->zstd, ZSTD_c_checksumFlag, 1);
	return 0;
}

static int zstd__put(struct sink *sink, const void *data, size_t len, bool finish)
{
	ZSTD_inBuffer in = {data, len, 0};
	size_t left;
	int err;

	do {
		ZSTD_outBuffer out = {sink->out, OUT_SIZE, 0};

		left = ZSTD_compressStream2(sink->zstd, &out, &in,
					    finish ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return -EIO;
		err = emit(sink, sink->out, out.pos);
		if (err)
			return err;
	} while (finish ? left != 0 : in.pos < in.size);
	return 0;
}

static void zstd__fini(struct sink *sink)
{
	ZSTD_freeCCtx(sink->zstd);
}

static const struct codec *codec_for(const char *path)
{
	static const struct codec codecs[] = {
		{".gz", gzip__init, gzip__put, gzip__fini},
		{".zst", zstd__init, zstd__put, zstd__fini},
		{"", plain__init, plain__put, plain__fini},
	};
	const struct codec *codec = codecs;
	size_t len = strlen(path);

	for (;; codec++) {
		size_t n = strlen(codec->suffix);

		if (len >= n && !strcmp(path + len - n, codec->suffix))
			return codec;
	}
}

static void say_hint(int err)
{
	switch (-err) {
	case ENOSPC:
	case EDQUOT:
		log__hint("make room there, write elsewhere, or write .fxt.gz, a quarter of the "
			  "size");
		break;
	case EFBIG:
		log__hint("the file size limit is reached (ulimit -f); .fxt.gz is a sixth of the "
			  "size");
		break;
	case ENOENT:
	case ENOTDIR:
		log__hint("the folder has to exist");
		break;
	case ENOMEM:
		log__hint("trace a shorter window, or decode on a machine with more memory");
		break;
	default:
		log__hint("choose a name in a folder that you may write to");
	}
}

/* What the user wrote last time is never overwritten, nor are devices and folders. */
static int keep_old(const char *path)
{
	_cleanup_free_ char *old = NULL;
	struct stat st;
	int err;

	if (lstat(path, &st))
		return 0;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
		log__error("cannot write %s: it exists, and is no file", path);
		log__hint("choose another name");
		return -EEXIST;
	}
	if (asprintf(&old, "%s.old", path) < 0) {
		old = NULL;
		return -ENOMEM;
	}
	if (!rename(path, old))
		return 0;
	err = -errno;
	log__error("cannot rename %s to %s: %s", path, old, strerror(-err));
	log__hint("remove one of the two, or choose another name");
	return err;
}

static int create(struct sink *sink, const char *path)
{
	int err;

	sink->path = strdup(path);
	err = sink->path ? sink->codec->init(sink) : -ENOMEM;
	if (err)
		return err;
	sink->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (sink->fd >= 0)
		return 0;
	err = -errno;
	sink->codec->fini(sink);
	return err;
}

struct sink *sink__open(const char *path)
{
	int err = keep_old(path);
	struct sink *sink;

	if (err) {
		errno = -err;
		return NULL;
	}
	sink = calloc(1, sizeof(*sink));
	err = -ENOMEM;
	if (sink) {
		sink->codec = codec_for(path);
		err = create(sink, path);
	}
	if (!err)
		return sink;
	log__error("cannot create %s: %s", path, strerror(-err));
	say_hint(err);
	if (sink)
		free(sink->path);
	free(sink);
	errno = -err;
	return NULL;
}

static void flush(struct sink *sink, bool finish)
{
	if (!sink->err)
		sink->err = sink->codec->put(sink, sink->in, sink->used, finish);
	sink->used = 0;
}

void sink__write(struct sink *sink, const void *data, size_t len)
{
	const uint8_t *from = data;

	while (len && !sink->err) {
		size_t room = IN_SIZE - sink->used;
		size_t n = len < room ? len : room;

		memcpy(sink->in + sink->used, from, n);
		sink->used += n;
		from += n;
		len -= n;
		if (sink->used == IN_SIZE)
			flush(sink, false);
	}
}

void sink__fail(struct sink *sink, int err)
{
	if (!sink->err)
		sink->err = err;
}

int sink__error(const struct sink *sink)
{
	return sink->err;
}

static void destroy(struct sink *sink)
{
	sink->codec->fini(sink);
	free(sink->path);
	free(sink);
}

int sink__close(struct sink *sink, uint64_t *bytes)
{
	int err;

	flush(sink, true);
	/* Network file systems report a full disk as late as this. */
	if (close(sink->fd) && !sink->err)
		sink->err = -errno;
	err = sink->err;
	if (err) {
		log__error("cannot write %s: %s", sink->path, strerror(-err));
		say_hint(err);
		unlink(sink->path);
	}
	if (bytes)
		*bytes = err ? 0 : sink->bytes;
	destroy(sink);
	return err;
}

void sink__abort(struct sink *sink)
{
	if (!sink)
		return;
	close(sink->fd);
	unlink(sink->path);
	destroy(sink);
}
