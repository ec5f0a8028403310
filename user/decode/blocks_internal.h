/* SPDX-License-Identifier: MIT */
/* Between the files of the block cache. */
#ifndef MTBPF_DECODE_BLOCKS_INTERNAL_H
#define MTBPF_DECODE_BLOCKS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/blocks.h"

struct blocks_slot {
	uint64_t ip;
	struct block *block;
};

struct blocks_arena {
	struct blocks_arena *before;
	size_t used;
	uint8_t bytes[64 * 1024] __attribute__((aligned(64)));
};

struct blocks {
	struct code_map *map;
	bool tell_all;
	uint64_t stamp; /* how often the code has changed */
	struct blocks_slot *slots;
	size_t n, n_slots;
	struct blocks_arena *arena;
};

/* 16-byte aligned; freed with all the others. NULL: no memory. */
void *blocks__alloc(struct blocks *blocks, size_t size);

/* known: the function that the last transfer went to. NULL: no memory. */
struct block *blocks__build(struct blocks *blocks, uint64_t ip, const struct function *known);

/* NULL where no code is known. */
const struct function *blocks__function_at(struct blocks *blocks, uint64_t ip);

#endif
