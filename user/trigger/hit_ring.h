/* SPDX-License-Identifier: MIT */
/* The hits that the BPF program left in its ring buffer, each with its copy of the stack. */
#ifndef MTBPF_TRIGGER_HIT_RING_H
#define MTBPF_TRIGGER_HIT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "mtbpf_shared.h"

struct ring_buffer;

struct hit_ring {
	struct ring_buffer *ring;
	struct mt_hit *next; /* where hit_ring__next() wants the hit, until it has it */
	uint8_t *stack;	     /* of the last hit */
	size_t stack_size, stack_max;
};

/* How many pieces of MT_COPY_PIECE hold so many bytes, wherever in the first of them they begin. */
uint32_t hit_ring__pieces(uint32_t stack_copy);
/* Of the ring's map, a power of two of at least `least`: room for a few hits with their stacks. */
uint32_t hit_ring__size(uint32_t least, uint32_t stack_copy);

/* The map's descriptor stays the caller's. 0 or -errno; hit_ring__close() in any case. */
int hit_ring__open(struct hit_ring *ring, int map_fd, uint32_t stack_copy);
void hit_ring__close(struct hit_ring *ring);

/* 1 and *hit with ring->stack; 0 none waiting; or -errno: -EBADMSG where it is damaged. */
int hit_ring__next(struct hit_ring *ring, struct mt_hit *hit);

#endif
