/* SPDX-License-Identifier: MIT */
/*
 * Compresses files in independent blocks, and reads compressed ones. Nothing else uses zstd, or
 * compresses with zlib.
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
	 * head() and tail() write the file's header and trailer; NULL: the format has none. tail()
	 * gets the check of all data (check() of each block, combined by join()) and the data's
	 * size. Both write at most CODEC_MAX_FRAME bytes and return the number.
	 */
	size_t (*head)(uint8_t *out);
	uint32_t (*check)(const void *data, size_t n);
	uint32_t (*join)(uint32_t before, uint32_t check, size_t n);
	size_t (*tail)(uint32_t check, uint64_t n, uint8_t *out);
};

#define CODEC_MAX_FRAME 16

/*
 * ".gz": one gzip member, since Perfetto's importer reads several but keeps 32 MB of memory for
 * each. ".zst": one zstd frame per block, which RFC 8878 allows. NULL: another suffix, and the file
 * is not compressed.
 */
const struct codec *codec__of(const char *path);

/* The versions that the libraries report. */
const char *codec__zlib_version(void);
const char *codec__zstd_version(void);

/* Reads plain or compressed files. The first bytes tell the format: gzip, zstd or plain. */

enum packing { PACKED_NOT, PACKED_GZIP, PACKED_ZSTD };

/* Recognizes the format by the file's first bytes; PACKED_NOT if they cannot be read. */
enum packing packing__of(int fd);

struct unpack;
struct meter;

/*
 * Reads from the file's beginning, whatever the offset of fd. fd must be seekable; it is
 * duplicated, so the caller may close it at any time. NULL with errno.
 */
struct unpack *unpack__open(int fd);
void unpack__free(struct unpack *unpack);
/* Counts the bytes read in the meter, as stored in the file, including earlier ones. */
void unpack__count(struct unpack *unpack, struct meter *meter);

/*
 * Reads the next `size` bytes; fewer only at the end, or before an error. Returns their number, 0
 * at the end, -EBADMSG if the file is damaged or cut short (the calls before have returned what
 * precedes that), or another -errno.
 */
ssize_t unpack__read(struct unpack *unpack, void *data, size_t size);

#endif
