/* SPDX-License-Identifier: MIT */
/*
 * A perf event's buffers: the ring of records, and the AUX area
 * (include/uapi/linux/perf_event.h: struct perf_event_mmap_page).
 */
#ifndef MTBPF_CAPTURE_PERF_PERF_RING_H
#define MTBPF_CAPTURE_PERF_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/recording/recording.h"

struct perf_ring {
	struct perf_event_mmap_page *page; /* NULL: not mapped */
	uint8_t *data;
	size_t data_size; /* a power of two */
	uint8_t *aux;	  /* NULL: none */
	size_t aux_size;
	uint64_t mark; /* backward: what was written before is not read */
};

/*
 * Maps the event's buffers. aux_size 0: no AUX area; else a power of two of at least a page. When
 * it is full, the kernel overwrites the oldest, or, if it is to be drained by
 * perf_ring__drain_aux(), stops. 0, or -errno: -EPERM over the limits of locked memory, -ENOMEM,
 * -EBUSY. Prints nothing.
 */
int perf_ring__map(struct perf_ring *ring, int event, size_t data_size, size_t aux_size,
		   bool drained);
/*
 * Maps the ring of an event with attr.write_backward, in which the kernel overwrites the oldest
 * records. It writes from the end to the start: the newest record is at data_head, and older ones
 * follow it (kernel/events/ring_buffer.c: __perf_output_begin).
 */
int perf_ring__map_backward(struct perf_ring *ring, int event, size_t data_size);
void perf_ring__unmap(struct perf_ring *ring);

/*
 * Copies the next record whole, header included, and gives its room back. Its size, 0 where there
 * is none, -EMSGSIZE where it does not fit (it is skipped).
 */
int perf_ring__next(struct perf_ring *ring, void *record, size_t size);

/* Forgets the contents of a backward ring. */
void perf_ring__clear(struct perf_ring *ring);
/* Bytes that were written since, more than the ring holds if it is full. */
uint64_t perf_ring__written(const struct perf_ring *ring);

struct perf_ring_cursor {
	uint64_t at, end;
};

/* At its newest record. What is written from here on may overwrite what is read. */
struct perf_ring_cursor perf_ring__newest(const struct perf_ring *ring);
/*
 * Copies the record at the cursor, header included, and moves on to the next older one. Returns its
 * size; 0 if the rest was never written or is overwritten; -EMSGSIZE if it does not fit (the cursor
 * has moved on).
 */
int perf_ring__older(const struct perf_ring *ring, struct perf_ring_cursor *cursor, void *record,
		     size_t size);

/*
 * Writes what has come since the last call to the spool, and frees that part of the ring. Returns
 * how many bytes it was. Only for a ring that is drained.
 */
size_t perf_ring__drain_aux(struct perf_ring *ring, struct spool *spool);

/*
 * Copies the AUX area out, oldest byte first; only while the event is disabled (aux_head is final
 * then). *data is freed by the caller. It has been filled from zeroes once: *wrapped where bytes
 * beyond the head show that it came round. 0 or -ENOMEM.
 */
int perf_ring__read_aux(const struct perf_ring *ring, uint8_t **data, size_t *size, bool *wrapped);

#endif
