// SPDX-License-Identifier: MIT
#include "decode/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/blocks_internal.h"
#include "kernel/huge_pages.h"

#define FIRST_SLOTS 1024

/*
 * Empty, and its pages there: one that is read before it is written is there twice, and the second
 * time interrupts all other CPUs that decode.
 */
static struct blocks_slot *new_slots(size_t n)
{
	struct blocks_slot *slots = huge_pages__alloc(n * sizeof(*slots));

	if (slots)
		memset(slots, 0, n * sizeof(*slots));
	return slots;
}

struct blocks *blocks__new(struct code_map *map, bool tell_all)
{
	struct blocks *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->map = map;
	b->tell_all = tell_all;
	b->slots = new_slots(FIRST_SLOTS);
	b->n_slots = FIRST_SLOTS;
	if (!b->slots) {
		free(b);
		return NULL;
	}
	return b;
}

static void free_arena(struct blocks *b)
{
	while (b->arena) {
		struct blocks_arena *before = b->arena->before;

		free(b->arena);
		b->arena = before;
	}
}

void blocks__free(struct blocks *b)
{
	if (!b)
		return;
	free_arena(b);
	free(b->slots);
	free(b);
}

void blocks__code_added(struct blocks *b)
{
	b->stamp++;
}

void blocks__clear(struct blocks *b)
{
	b->stamp++;
	free_arena(b);
	memset(b->slots, 0, b->n_slots * sizeof(*b->slots));
	b->n = 0;
}

void *blocks__alloc(struct blocks *b, size_t size)
{
	struct blocks_arena *arena = b->arena;
	void *at;

	size = (size + 15) & ~(size_t)15;
	if (!arena || arena->used + size > sizeof(arena->bytes)) {
		arena = aligned_alloc(64, sizeof(*arena));
		if (!arena)
			return NULL;
		arena->before = b->arena;
		arena->used = 0;
		b->arena = arena;
	}
	at = arena->bytes + arena->used;
	arena->used += size;
	return at;
}

/* Fibonacci hashing: the high bits of the product depend on all of ip. */
static size_t slot_of(const struct blocks *b, uint64_t ip)
{
	return (size_t)(ip * 0x9e3779b97f4a7c15ull >> 20) & (b->n_slots - 1);
}

static void insert(struct blocks *b, struct block *block)
{
	size_t i = slot_of(b, block->ip);

	while (b->slots[i].block)
		i = (i + 1) & (b->n_slots - 1);
	b->slots[i] = (struct blocks_slot){block->ip, block};
}

static int grow(struct blocks *b)
{
	struct blocks_slot *old = b->slots;
	size_t n = b->n_slots;

	b->slots = new_slots(2 * n);
	if (!b->slots) {
		b->slots = old;
		return -ENOMEM;
	}
	b->n_slots = 2 * n;
	for (size_t i = 0; i < n; i++)
		if (old[i].block)
			insert(b, old[i].block);
	free(old);
	return 0;
}

static struct block *add(struct blocks *b, uint64_t ip)
{
	struct block *block;

	if (2 * b->n >= b->n_slots && grow(b))
		return NULL;
	block = blocks__build(b, ip, blocks__function_at(b, ip));
	if (!block)
		return NULL;
	insert(b, block);
	b->n++;
	return block;
}

struct block *blocks__find(struct blocks *b, uint64_t ip)
{
	size_t i = slot_of(b, ip);

	while (b->slots[i].block) {
		if (b->slots[i].ip == ip)
			return b->slots[i].block;
		i = (i + 1) & (b->n_slots - 1);
	}
	return add(b, ip);
}

/*
 * Behind a condition that was not taken no transfer has told which function runs: where it is
 * another one by now, the next branch has to be handed on, and the block is this one's alone.
 */
static struct block *fall_through(struct blocks *b, struct block *block)
{
	uint64_t ip = block->last_ip + block->last_len;

	if (b->tell_all || blocks__function_at(b, ip) == block->known_function)
		return blocks__find(b, ip);
	return blocks__build(b, ip, block->known_function);
}

struct block *blocks__link(struct blocks *b, struct block *block, unsigned int which)
{
	if (!block->next[which])
		block->next[which] = which && block->end == BLOCK_COND
					     ? blocks__find(b, block->target)
					     : fall_through(b, block);
	return block->next[which];
}
