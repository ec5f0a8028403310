/* SPDX-License-Identifier: MIT */
/* How a file's blocks are compressed, each by itself. The only user of zlib and zstd. */
#ifndef MTBPF_TRACE_CODEC_H
#define MTBPF_TRACE_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Several threads may each use a state of their own. */
struct codec {
	const char *suffix; /* of the file's name */
	void *(*new)(void); /* a state; NULL: no memory */
	void (*free)(void *state);
	/* How large n bytes may become. */
	size_t (*bound)(size_t n);
	/* The number of bytes in out, or -errno. */
	ssize_t (*encode)(void *state, const void *data, size_t n, void *out, size_t size);
	/*
	 * What stands around all blocks, unless NULL: in front of them; behind them, by what
	 * check() said of each, joined in their order, and how many bytes it was of. Both are
	 * CODEC_MAX_FRAME bytes at most, and return how many.
	 */
	size_t (*head)(uint8_t *out);
	uint32_t (*check)(const void *data, size_t n);
	uint32_t (*join)(uint32_t before, uint32_t check, size_t n);
	size_t (*tail)(uint32_t check, uint64_t n, uint8_t *out);
};

#define CODEC_MAX_FRAME 16

/*
 * ".gz": one gzip member. Perfetto's importer reads files of several, but keeps 32 MB of memory for
 * each. ".zst": a zstd frame a block, which RFC 8878 allows. NULL where bytes are to stay as they
 * are.
 */
const struct codec *codec__of(const char *path);

/* Of the libraries, as they say themselves. */
const char *codec__zlib_version(void);
const char *codec__zstd_version(void);

/* Reads a file that may be compressed, as its first bytes tell: gzip, zstd, or neither. */

enum packing { PACKED_NOT, PACKED_GZIP, PACKED_ZSTD };

/* By the first bytes of the file. */
enum packing packing__of(int fd);

struct unpack;
struct meter;

/*
 * From the file's beginning, whatever the offset of fd, which stays the caller's, need not stay
 * open, and must be seekable. NULL with errno.
 */
struct unpack *unpack__open(int fd);
void unpack__free(struct unpack *unpack);
/* What is read, and has been read, in bytes of the file as it lies there. */
void unpack__count(struct unpack *unpack, struct meter *meter);

/*
 * The next bytes, size of them but at the end: 0 is the end. -EBADMSG: damaged, or cut short;
 * what came before that has been returned. Another -errno.
 */
ssize_t unpack__read(struct unpack *unpack, void *data, size_t size);

#endif
