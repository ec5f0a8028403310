/* SPDX-License-Identifier: MIT */
/* Reads a file that may be compressed, as its first bytes tell: gzip, zstd, or neither. */
#ifndef MTBPF_TRACE_READ_UNPACK_H
#define MTBPF_TRACE_READ_UNPACK_H

#include <stddef.h>
#include <sys/types.h>

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
