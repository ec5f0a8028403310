// SPDX-License-Identifier: MIT
#include "util/hash_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 64

void hash_index__fini(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index){0};
}

static void put(struct hash_index *index, uint64_t hash, uint32_t number)
{
	size_t at = hash & (index->cap - 1);

	while (index->slots[at].number)
		at = (at + 1) & (index->cap - 1);
	index->slots[at] = (struct hash_slot){hash, number};
	index->n++;
}

static int grow(struct hash_index *index)
{
	struct hash_index bigger = {.cap = index->cap ? 2 * index->cap : FIRST_CAP};

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < index->cap; i++)
		if (index->slots[i].number)
			put(&bigger, index->slots[i].hash, index->slots[i].number);
	free(index->slots);
	*index = bigger;
	return 0;
}

int hash_index__add(struct hash_index *index, uint64_t hash, uint32_t number)
{
	/* Half of it stays empty, so that what is not there is soon not found. */
	if (2 * (index->n + 1) > index->cap && grow(index))
		return -ENOMEM;
	put(index, hash, number);
	return 0;
}

uint64_t hash__bytes(uint64_t hash, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = hash__mix(hash, word);
	}
	word = 0;
	if (len)
		memcpy(&word, p, len);
	return hash__mix(hash__mix(hash, word), len);
}
