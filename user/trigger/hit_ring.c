// SPDX-License-Identifier: MIT
#include "trigger/hit_ring.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t hit_ring__pieces(uint32_t stack_copy)
{
	return stack_copy ? (stack_copy + MT_COPY_PIECE - 1) / MT_COPY_PIECE + 1 : 0;
}

uint32_t hit_ring__size(uint32_t least, uint32_t stack_copy)
{
	uint32_t hit = sizeof(struct mt_hit) + hit_ring__pieces(stack_copy) * MT_COPY_PIECE;

	while (least < 4 * hit)
		least *= 2;
	return least;
}

/* Drops bytes below the stack pointer and beyond stack_max. */
static void take_stack(struct hit_ring *ring, struct mt_hit *hit, const uint8_t *copy)
{
	size_t below = hit->sp % MT_COPY_PIECE;

	ring->stack_size = hit->copied > below ? hit->copied - below : 0;
	if (ring->stack_size > ring->stack_max)
		ring->stack_size = ring->stack_max;
	if (ring->stack_size)
		memcpy(ring->stack, copy + below, ring->stack_size);
	hit->copied = (uint32_t)ring->stack_size;
}

/* Copies one hit to ring->next. Returns an error, which stops libbpf: it would take more hits. */
static int copy_hit(void *ctx, void *data, size_t size)
{
	struct hit_ring *ring = ctx;
	struct mt_hit *hit = ring->next;

	if (size < sizeof(*hit))
		return -EBADMSG;
	memcpy(hit, data, sizeof(*hit));
	if (hit->copied > size - sizeof(*hit))
		return -EBADMSG;
	take_stack(ring, hit, (const uint8_t *)data + sizeof(*hit));
	ring->next = NULL;
	return -ECANCELED;
}

int hit_ring__open(struct hit_ring *ring, int map_fd, uint32_t stack_copy)
{
	*ring = (struct hit_ring){.stack_max = stack_copy};
	ring->stack = malloc(stack_copy ? stack_copy : 1);
	if (!ring->stack)
		return -ENOMEM;
	ring->ring = ring_buffer__new(map_fd, copy_hit, ring, NULL);
	return ring->ring ? 0 : -errno;
}

void hit_ring__close(struct hit_ring *ring)
{
	ring_buffer__free(ring->ring);
	free(ring->stack);
}

int hit_ring__next(struct hit_ring *ring, struct mt_hit *hit)
{
	int err;

	ring->next = hit;
	err = ring_buffer__consume(ring->ring);
	if (!ring->next)
		return 1;
	return err < 0 ? err : 0;
}
