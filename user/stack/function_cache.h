/* SPDX-License-Identifier: MIT */
/*
 * Which function lies at an address: a trace asks for the same few thousand addresses millions of
 * times.
 */
#ifndef MTBPF_STACK_FUNCTION_CACHE_H
#define MTBPF_STACK_FUNCTION_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "target/code_map.h"

/* A power of two. */
#define FUNCTION_CACHE_SIZE 16384

struct function_cache {
	struct code_map *map;
	unsigned int
		replaced; /* what is cached is of the map before code was put in place of other */
	struct cached_function {
		uint64_t ip;
		const struct function *function; /* NULL: nothing is cached here */
		bool is_entry;
	} places[FUNCTION_CACHE_SIZE];
};

/* The map must outlive it. */
void function_cache__init(struct function_cache *cache, struct code_map *map);

/*
 * The function at ip as the map has it now, and whether ip is its first instruction; NULL where no
 * code is known.
 */
const struct function *function_cache__find(struct function_cache *cache, uint64_t ip,
					    bool *is_entry);

#endif
