/* SPDX-License-Identifier: MIT */
/*
 * Bytes into a file, large pieces past the page cache: to copy them there takes a CPU longer than
 * to make them. Where the disk turns out to be slow, or does not do so, the cache takes the rest.
 */
#ifndef MTBPF_TRACE_SINK_FILE_WRITER_H
#define MTBPF_TRACE_SINK_FILE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
