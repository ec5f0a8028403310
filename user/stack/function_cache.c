// SPDX-License-Identifier: MIT
#include "stack/function_cache.h"

#include <string.h>

void function_cache__init(struct function_cache *cache, struct code_map *map)
{
	cache->map = map;
}

void function_cache__follow(struct function_cache *cache)
{
	unsigned int replaced = code_map__replaced(cache->map);

	if (replaced == cache->replaced)
		return;
	memset(cache->places, 0, sizeof(cache->places));
	cache->replaced = replaced;
}

const struct function *function_cache__look_up(struct function_cache *cache, uint64_t ip,
					       bool *is_entry)
{
	struct code_place place;

	*is_entry = false;
	/* Code that comes where there was none makes nothing wrong that is cached. */
	if (!code_map__find(cache->map, ip, &place))
		return NULL;
	*is_entry = place.entry == ip;
	*function_cache__place(cache, ip) = (struct cached_function){
		.ip = ip,
		.function = place.function,
		.is_entry = *is_entry,
		.role = *is_entry ? function_role__at(cache->map, &place) : ROLE_NONE,
	};
	return place.function;
}
