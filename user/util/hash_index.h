/* SPDX-License-Identifier: MIT */
/* Finds things by a hash: which of them have it, by number. */
#ifndef MTBPF_UTIL_HASH_INDEX_H
#define MTBPF_UTIL_HASH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is empty. */
struct hash_index {
	struct hash_slot {
		uint64_t hash;
		uint32_t number; /* 0: an empty slot */
	} * slots;
	size_t n, cap; /* cap: 0 or a power of two */
};

void hash_index__fini(struct hash_index *index);

/* One more thing with that hash; a number is not 0. 0 or -ENOMEM. */
int hash_index__add(struct hash_index *index, uint64_t hash, uint32_t number);

/* Odd, and without a pattern: the fraction of the golden ratio. */
#define HASH_ODD 0x9e3779b97f4a7c15ull

static inline uint64_t hash__mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * HASH_ODD;
	return hash ^ hash >> 32;
}

uint64_t hash__bytes(uint64_t hash, const void *bytes, size_t len);

/*
 * The first thing with that hash, or 0, where *at is 0; behind that the next. Others may have the
 * same hash: the caller looks.
 */
static inline uint32_t hash_index__next(const struct hash_index *index, uint64_t hash, size_t *at)
{
	size_t mask = index->cap - 1;

	if (!index->cap)
		return 0;
	for (;;) {
		const struct hash_slot *slot = &index->slots[(hash + (*at)++) & mask];

		if (!slot->number)
			return 0;
		if (slot->hash == hash)
			return slot->number;
	}
}

#endif
