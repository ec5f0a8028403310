// SPDX-License-Identifier: MIT
#include "capture/perf/perf_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The kernel overwrites old data in a buffer that is mapped without PROT_WRITE. */
static int map(struct perf_ring *ring, int event, size_t data_size, size_t aux_size, int data_prot,
	       int aux_prot)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page + data_size, data_prot, MAP_SHARED, event, 0);

	*ring = (struct perf_ring){0};
	if (p == MAP_FAILED)
		return -errno;
	ring->page = p;
	ring->data = (uint8_t *)p + page;
	ring->data_size = data_size;
	if (!aux_size)
		return 0;
	ring->page->aux_offset = page + data_size;
	ring->page->aux_size = aux_size;
	p = mmap(NULL, aux_size, aux_prot, MAP_SHARED, event, (off_t)ring->page->aux_offset);
	if (p == MAP_FAILED) {
		int err = -errno;

		perf_ring__unmap(ring);
		return err;
	}
	ring->aux = p;
	ring->aux_size = aux_size;
	return 0;
}

int perf_ring__map(struct perf_ring *ring, int event, size_t data_size, size_t aux_size,
		   bool drained)
{
	return map(ring, event, data_size, aux_size, PROT_READ | PROT_WRITE,
		   drained ? PROT_READ | PROT_WRITE : PROT_READ);
}

int perf_ring__map_backward(struct perf_ring *ring, int event, size_t data_size)
{
	return map(ring, event, data_size, 0, PROT_READ, 0);
}

void perf_ring__unmap(struct perf_ring *ring)
{
	if (ring->aux)
		munmap(ring->aux, ring->aux_size);
	if (ring->page)
		munmap(ring->page, (size_t)(ring->data - (uint8_t *)ring->page) + ring->data_size);
	*ring = (struct perf_ring){0};
}

static void copy_out(const struct perf_ring *ring, uint64_t at, void *out, size_t n)
{
	size_t start = at & (ring->data_size - 1);
	size_t first = ring->data_size - start < n ? ring->data_size - start : n;

	memcpy(out, ring->data + start, first);
	memcpy((uint8_t *)out + first, ring->data, n - first);
}

static uint64_t head_of(const struct perf_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

int perf_ring__next(struct perf_ring *ring, void *record, size_t size)
{
	uint64_t head = head_of(ring);
	uint64_t tail = ring->page->data_tail;
	struct perf_event_header header;
	int n;

	if (head - tail < sizeof(header))
		return 0;
	copy_out(ring, tail, &header, sizeof(header));
	n = header.size;
	if (header.size < sizeof(header) || header.size > head - tail) {
		/* Only a broken kernel writes that; nothing behind it can be read. */
		__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
		return 0;
	}
	if (header.size <= size)
		copy_out(ring, tail, record, header.size);
	else
		n = -EMSGSIZE;
	__atomic_store_n(&ring->page->data_tail, tail + header.size, __ATOMIC_RELEASE);
	return n;
}

void perf_ring__clear(struct perf_ring *ring)
{
	ring->mark = head_of(ring);
}

/* The head starts at 0 and falls. */
uint64_t perf_ring__written(const struct perf_ring *ring)
{
	return ring->mark - head_of(ring);
}

struct perf_ring_cursor perf_ring__newest(const struct perf_ring *ring)
{
	uint64_t head = head_of(ring), written = ring->mark - head;

	return (struct perf_ring_cursor){
		.at = head, .end = head + (written < ring->data_size ? written : ring->data_size)};
}

int perf_ring__older(const struct perf_ring *ring, struct perf_ring_cursor *cursor, void *record,
		     size_t size)
{
	uint64_t left = cursor->end - cursor->at;
	struct perf_event_header header;

	if (left < sizeof(header))
		return 0;
	copy_out(ring, cursor->at, &header, sizeof(header));
	/* The oldest has lost its end to the newest. */
	if (header.size < sizeof(header) || header.size > left)
		return 0;
	if (header.size <= size)
		copy_out(ring, cursor->at, record, header.size);
	cursor->at += header.size;
	return header.size <= size ? header.size : -EMSGSIZE;
}

/* Head and tail count on: kernel/events/ring_buffer.c, perf_aux_output_end(). */
size_t perf_ring__drain_aux(struct perf_ring *ring, struct spool *spool)
{
	uint64_t head = __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->aux_tail;
	size_t n = head - tail, at = tail & (ring->aux_size - 1);
	size_t first = ring->aux_size - at < n ? ring->aux_size - at : n;

	if (n > ring->aux_size)
		return 0;
	spool__write(spool, ring->aux + at, first);
	spool__write(spool, ring->aux, n - first);
	__atomic_store_n(&ring->page->aux_tail, head, __ATOMIC_RELEASE);
	return n;
}

/* The area starts as zeroes, and no PT packet but PAD is zero: anything beyond the head is old. */
static bool has_old_data(const uint8_t *from, const uint8_t *end)
{
	for (; from < end; from++)
		if (*from)
			return true;
	return false;
}

int perf_ring__read_aux(const struct perf_ring *ring, uint8_t **data, size_t *size, bool *wrapped)
{
	/* In overwrite mode the head is an offset in the area (perf_aux_output_end()). */
	uint64_t head = __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE) % ring->aux_size;
	const uint8_t *end = ring->aux + ring->aux_size;
	size_t behind = 0;

	*wrapped = has_old_data(ring->aux + head, end);
	if (*wrapped)
		behind = ring->aux_size - head;
	*size = behind + head;
	*data = malloc(*size ? *size : 1);
	if (!*data)
		return -ENOMEM;
	memcpy(*data, ring->aux + head, behind);
	memcpy(*data + behind, ring->aux, head);
	return 0;
}
