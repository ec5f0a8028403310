/* SPDX-License-Identifier: MIT */
/* Where a trace's bytes go: a file, compressed as its suffix says, by threads of its own. */
#ifndef MTBPF_TRACE_SINK_SINK_H
#define MTBPF_TRACE_SINK_SINK_H

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

#endif
