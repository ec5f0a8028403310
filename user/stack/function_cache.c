// SPDX-License-Identifier: MIT
#include "stack/function_cache.h"

#include <string.h>

void function_cache__init(struct function_cache *cache, struct code_map *map)
{
	memset(cache, 0, sizeof(*cache));
	cache->map = map;
}

/* Neighbours are asked for together: what is above the low bits must tell them apart as well. */
static struct cached_function *slot_of(struct function_cache *cache, uint64_t ip)
{
	return &cache->places[(ip ^ ip >> 12) % FUNCTION_CACHE_SIZE];
}

static const struct function *look_up(struct function_cache *cache, uint64_t ip,
				      struct cached_function *slot)
{
	struct code_place place;

	/* Code that comes where there was none makes nothing wrong that is cached. */
	if (!code_map__find(cache->map, ip, &place))
		return NULL;
	*slot = (struct cached_function){ip, place.function, place.entry == ip};
	return place.function;
}

const struct function *function_cache__find(struct function_cache *cache, uint64_t ip,
					    bool *is_entry)
{
	struct cached_function *slot = slot_of(cache, ip);
	unsigned int replaced = code_map__replaced(cache->map);

	if (replaced != cache->replaced) {
		memset(cache->places, 0, sizeof(cache->places));
		cache->replaced = replaced;
	}
	*is_entry = false;
	if ((slot->ip != ip || !slot->function) && !look_up(cache, ip, slot))
		return NULL;
	*is_entry = slot->is_entry;
	return slot->function;
}
