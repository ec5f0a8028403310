/* SPDX-License-Identifier: MIT */
/* Where a trace's bytes go: a file, compressed as its suffix says, by threads of its own. */
#ifndef MTBPF_TRACE_SINK_H
#define MTBPF_TRACE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SINK_MAX_ROOM 4096

struct sink;

/*
 * Creates path with mode 0600: ".gz" is compressed with zlib, ".zst" with zstd, everything else is
 * plain. It has a name of its own beside that (PATH.XXXXXX.part) until it is whole. NULL with errno
 * after one line and a hint on stderr.
 */
struct sink *sink__open(const char *path);

/*
 * Appends. The first error sticks: writes behind it do nothing. What is written reaches the file
 * later, and so do its errors.
 */
void sink__write(struct sink *sink, const void *data, size_t len);
/*
 * The same, where the bytes are made: room for `len` of them, SINK_MAX_ROOM at most, of which the
 * caller then uses the first `used`. NULL behind an error.
 */
void *sink__room(struct sink *sink, size_t len);
void sink__use_room(struct sink *sink, size_t used);
/* Sets the sticky error (-errno), as where the writer above runs out of memory. */
void sink__fail(struct sink *sink, int err);
/* The sticky error: 0 or -errno. */
int sink__error(const struct sink *sink);

/*
 * Finishes the file, gives it its name (what has it already is PATH.old then), and frees the sink.
 * *bytes is the file's size. 0, or -errno after one line and
 * a hint on stderr; the partial file is removed then.
 */
int sink__close(struct sink *sink, uint64_t *bytes);
/* Removes the partial file and frees the sink. NULL is fine. */
void sink__abort(struct sink *sink);

/*
 * Bytes into a file, large pieces past the page cache: to copy them there takes a CPU longer than
 * to make them. Where the disk turns out to be slow, or does not do so, the cache takes the rest.
 */

/* Pieces whose address and size are multiples of it may go past the cache. */
#define FILE_WRITER_PAGE 4096

struct file_writer {
	int fd; /* the caller's; new, at its begin */
	bool is_direct, was_direct;
	/* Past the cache, so far. */
	uint64_t bytes, ns;
};

/* Appends all of it. 0 or -errno. */
int file_writer__write(struct file_writer *writer, const void *data, size_t len);

/* So many bytes in that time: the cache would have taken them faster. */
bool file_writer__is_slow(uint64_t bytes, uint64_t ns);

#endif
