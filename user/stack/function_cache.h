/* SPDX-License-Identifier: MIT */
/*
 * Which function lies at an address: a trace asks for the same few thousand addresses millions of
 * times.
 */
#ifndef MTBPF_STACK_FUNCTION_CACHE_H
#define MTBPF_STACK_FUNCTION_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/function_role.h"
#include "target/code_map.h"

/* A power of two. */
#define FUNCTION_CACHE_SIZE 32768

struct function_cache {
	struct code_map *map;
	unsigned int
		replaced; /* what is cached is of the map before code was put in place of other */
	struct cached_function {
		uint64_t ip;
		const struct function *function; /* NULL: nothing is cached here */
		bool is_entry;
		uint8_t role; /* enum function_role, of an entry */
	} places[FUNCTION_CACHE_SIZE];
};

/* Of memory that is zero, so that no more of it is touched than is used. The map must outlive it.
 */
void function_cache__init(struct function_cache *cache, struct code_map *map);

/* Forgets everything where code has been put in the place of other code: to be asked now and then.
 */
void function_cache__follow(struct function_cache *cache);

/* Neighbours are asked for together: what is above the low bits must tell them apart as well. */
static inline struct cached_function *function_cache__place(struct function_cache *cache,
							    uint64_t ip)
{
	return &cache->places[(ip ^ ip >> 15) % FUNCTION_CACHE_SIZE];
}

/* For what is not in the cache. */
const struct function *function_cache__look_up(struct function_cache *cache, uint64_t ip,
					       bool *is_entry);

/*
 * The function at ip as the map had it when the cache followed it last, and whether ip is its first
 * instruction; NULL where no code is known.
 */
static inline const struct function *function_cache__find(struct function_cache *cache, uint64_t ip,
							  bool *is_entry)
{
	const struct cached_function *place = function_cache__place(cache, ip);

	if (place->ip != ip || !place->function)
		return function_cache__look_up(cache, ip, is_entry);
	*is_entry = place->is_entry;
	return place->function;
}

/* The role of the function that was found at ip by the last search. */
static inline enum function_role function_cache__role(struct function_cache *cache, uint64_t ip)
{
	const struct cached_function *place = function_cache__place(cache, ip);

	return place->ip == ip ? (enum function_role)place->role : ROLE_NONE;
}

#endif
