/* SPDX-License-Identifier: MIT */
/*
 * A perf ring that overwrites its oldest records: attr.write_backward, mapped read-only. The kernel
 * writes it from the end to the begin, so that the newest record stands at data_head, whole, and
 * the older ones follow it (kernel/events/ring_buffer.c: __perf_output_begin).
 */
#ifndef MTBPF_CAPTURE_SAMPLE_BACK_RING_H
#define MTBPF_CAPTURE_SAMPLE_BACK_RING_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct back_ring {
	struct perf_event_mmap_page *page; /* NULL: not mapped */
	const uint8_t *data;
	size_t size;   /* a power of two */
	uint64_t mark; /* where data_head was: what was written before is not read */
};

/* 0 or -errno, as perf_ring__map(). Prints nothing. */
int back_ring__map(struct back_ring *ring, int event, size_t size);
void back_ring__unmap(struct back_ring *ring);

/* Forgets what has been written till now. */
void back_ring__clear(struct back_ring *ring);
/* Bytes that were written since, more than the ring holds if it is full. */
uint64_t back_ring__written(const struct back_ring *ring);

/* What back_ring__next() has come to. */
struct back_cursor {
	uint64_t at, end;
};

/*
 * Begins with the newest record. To be called while nothing is written, or what is read may be
 * overwritten meanwhile.
 */
struct back_cursor back_ring__begin(const struct back_ring *ring);
/*
 * Copies the next older record whole, header included. Its size; 0 where the rest has never been
 * written, or has been overwritten; -EMSGSIZE where it does not fit (the cursor is behind it).
 */
int back_ring__next(const struct back_ring *ring, struct back_cursor *cursor, void *record,
		    size_t size);

#endif
