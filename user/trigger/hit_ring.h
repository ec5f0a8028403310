/* SPDX-License-Identifier: MIT */
/* Reads hits, each with its copy of the stack, from the BPF program's ring buffer. */
#ifndef MTBPF_TRIGGER_HIT_RING_H
#define MTBPF_TRIGGER_HIT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "mtbpf_shared.h"

struct ring_buffer;

struct hit_ring {
	struct ring_buffer *ring;
	struct mt_hit *next; /* output of hit_ring__next(); NULL once it is filled */
	uint8_t *stack;	     /* of the last hit */
	size_t stack_size, stack_max;
};

/*
 * Pieces of MT_COPY_PIECE that hold stack_copy bytes, wherever the first piece has the first byte.
 */
uint32_t hit_ring__pieces(uint32_t stack_copy);
/* Size of the ring for a few hits with their stacks: a power of two, at least `least`. */
uint32_t hit_ring__size(uint32_t least, uint32_t stack_copy);

/* The caller keeps map_fd. 0 or -errno; call hit_ring__close() in any case. */
int hit_ring__open(struct hit_ring *ring, int map_fd, uint32_t stack_copy);
void hit_ring__close(struct hit_ring *ring);

/*
 * Returns 1 and fills *hit and ring->stack; 0 if no hit is waiting; or -errno: -EBADMSG if damaged.
 */
int hit_ring__next(struct hit_ring *ring, struct mt_hit *hit);

#endif
