/* SPDX-License-Identifier: MIT */
/*
 * Compresses files in independent blocks, and reads compressed ones. The only user of zlib and
 * zstd.
 */
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
	/* The largest size that n bytes may compress to. */
	size_t (*bound)(size_t n);
	/* The number of bytes in out, or -errno. */
	ssize_t (*encode)(void *state, const void *data, size_t n, void *out, size_t size);
	/*
	 * The file's header and trailer, unless NULL. tail() gets the joined checks of all blocks
	 * and their number of bytes. Both write at most CODEC_MAX_FRAME bytes and return the count.
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

/* The versions that the libraries report. */
const char *codec__zlib_version(void);
const char *codec__zstd_version(void);

/* Reads plain or compressed files. The first bytes tell the format: gzip, zstd or plain. */

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
/* Counts the bytes read in the meter, as stored in the file, including earlier ones. */
void unpack__count(struct unpack *unpack, struct meter *meter);

/*
 * The next bytes, size of them but at the end: 0 is the end. -EBADMSG: damaged, or cut short;
 * what came before that has been returned. Another -errno.
 */
ssize_t unpack__read(struct unpack *unpack, void *data, size_t size);

#endif
