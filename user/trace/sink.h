/* SPDX-License-Identifier: MIT */
/* The output file of a trace, compressed as its suffix says, by worker threads. */
#ifndef MTBPF_TRACE_SINK_H
#define MTBPF_TRACE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SINK_MAX_ROOM 4096

struct sink;

/*
 * Creates path with mode 0600: ".gz" is compressed with zlib, ".zst" with zstd, everything else is
 * plain. It has a temporary name (PATH.XXXXXX.part) until it is complete. NULL with errno after one
 * line and a hint on stderr.
 */
struct sink *sink__open(const char *path);

/*
 * Appends. The first error sticks: later writes do nothing. Data reaches the file later, and so do
 * its errors.
 */
void sink__write(struct sink *sink, const void *data, size_t len);
/*
 * Like sink__write(), without a copy: returns room for `len` bytes, SINK_MAX_ROOM at most; NULL
 * after an error. sink__use_room() then appends the first `used` of them.
 */
void *sink__room(struct sink *sink, size_t len);
void sink__use_room(struct sink *sink, size_t used);
/*
 * Sets the sticky error (-errno), for example if the caller ran out of memory. Does nothing if
 * there is one already.
 */
void sink__fail(struct sink *sink, int err);
/* The sticky error: 0 or -errno. */
int sink__error(const struct sink *sink);

/*
 * Finishes the file, renames it to its path (an existing file becomes PATH.old), and frees the
 * sink. *bytes (may be NULL) is the file's size; 0 after an error. 0, or -errno after one line and
 * a hint on stderr; the partial file is removed then.
 */
int sink__close(struct sink *sink, uint64_t *bytes);
/* Removes the partial file and frees the sink. NULL is fine. */
void sink__abort(struct sink *sink);

/*
 * Writes large pieces past the page cache, because copying them there takes longer than making
 * them. If the disk is slow, or direct writes fail, the cache takes the rest.
 */

/* Pieces whose address and size are multiples of this may bypass the cache. */
#define FILE_WRITER_PAGE 4096

struct file_writer {
	int fd; /* of a new file, at offset 0; the caller closes it. Zero-initialise the rest. */
	bool is_direct, was_direct;
	/* Written past the cache so far, and the time that it took. */
	uint64_t bytes, ns;
};

/* Appends all of it. 0 or -errno. */
int file_writer__write(struct file_writer *writer, const void *data, size_t len);

/* True if writing this many bytes in this time is slower than the page cache. */
bool file_writer__is_slow(uint64_t bytes, uint64_t ns);

#endif
