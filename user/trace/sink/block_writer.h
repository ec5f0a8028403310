/* SPDX-License-Identifier: MIT */
/*
 * Blocks of bytes on their way into a file: the caller fills one while others are compressed and
 * written, in order, by threads of the writer's own.
 */
#ifndef MTBPF_TRACE_SINK_BLOCK_WRITER_H
#define MTBPF_TRACE_SINK_BLOCK_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "trace/sink/codec.h"

struct block_writer;

struct block {
	uint8_t *data;
	size_t size; /* of which the caller fills */
	size_t n;    /* so many, or more than it has begun with */
	/* The writer's. */
	uint8_t *encoded;
	uint32_t check; /* the codec's */
	uint64_t number;
	struct block *next;
};

/* fd stays the caller's. codec: NULL for none. NULL: no memory. */
struct block_writer *block_writer__new(int fd, const struct codec *codec);
/* Waits for what is under way. NULL is fine. */
void block_writer__free(struct block_writer *writer);

/*
 * One that is free, as soon as there is one, with what was left of the last one: up to a page. The
 * caller has one at a time.
 */
struct block *block_writer__take(struct block_writer *writer);
/* Hands a block on, to be written behind those before. What fills no page waits for the next. */
void block_writer__put(struct block_writer *writer, struct block *block);

/* The first error so far, 0 or -errno: of a block that was handed on earlier. */
int block_writer__error(struct block_writer *writer);
/* The same, when everything has been written; *bytes is the file's size. */
int block_writer__finish(struct block_writer *writer, uint64_t *bytes);

#endif
