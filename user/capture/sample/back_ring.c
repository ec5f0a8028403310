// SPDX-License-Identifier: MIT
#include "capture/sample/back_ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int back_ring__map(struct back_ring *ring, int event, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page + size, PROT_READ, MAP_SHARED, event, 0);

	*ring = (struct back_ring){0};
	if (p == MAP_FAILED)
		return -errno;
	ring->page = p;
	ring->data = (const uint8_t *)p + page;
	ring->size = size;
	return 0;
}

void back_ring__unmap(struct back_ring *ring)
{
	if (ring->page)
		munmap(ring->page, (size_t)(ring->data - (const uint8_t *)ring->page) + ring->size);
	*ring = (struct back_ring){0};
}

static uint64_t head_of(const struct back_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

void back_ring__clear(struct back_ring *ring)
{
	ring->mark = head_of(ring);
}

/* The head starts at 0 and falls. */
uint64_t back_ring__written(const struct back_ring *ring)
{
	return ring->mark - head_of(ring);
}

struct back_cursor back_ring__begin(const struct back_ring *ring)
{
	uint64_t head = head_of(ring), written = ring->mark - head;

	return (struct back_cursor){.at = head,
				    .end = head + (written < ring->size ? written : ring->size)};
}

static void copy_out(const struct back_ring *ring, uint64_t at, void *out, size_t n)
{
	size_t start = at & (ring->size - 1);
	size_t first = ring->size - start < n ? ring->size - start : n;

	memcpy(out, ring->data + start, first);
	memcpy((uint8_t *)out + first, ring->data, n - first);
}

int back_ring__next(const struct back_ring *ring, struct back_cursor *cursor, void *record,
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
