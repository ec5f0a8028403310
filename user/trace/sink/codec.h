/* SPDX-License-Identifier: MIT */
/* How a file's blocks are compressed, each by itself. The only user of zlib and zstd. */
#ifndef MTBPF_TRACE_SINK_CODEC_H
#define MTBPF_TRACE_SINK_CODEC_H

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
};

/*
 * ".gz": a gzip member a block; RFC 1952 makes any number of them a file. ".zst": a zstd frame a
 * block, which RFC 8878 allows in the same way. NULL where bytes are to stay as they are.
 */
const struct codec *codec__of(const char *path);

/* Of the libraries, as they say themselves. */
const char *codec__zlib_version(void);
const char *codec__zstd_version(void);

#endif
