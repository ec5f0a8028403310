// SPDX-License-Identifier: MIT
#include "trace/string_table.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 65536

/* Slot 0 holds no string: it is the end of each chain and the head of the circular LRU list. */
struct slot {
	char *text;
	uint32_t len, hash;
	uint16_t next;	       /* in its bucket's chain */
	uint16_t older, newer; /* [0].older is the newest slot, [0].newer the oldest */
};

struct string_table {
	unsigned int capacity, used;
	struct slot *slots;
	uint16_t buckets[BUCKETS];
};

struct string_table *string_table__new(unsigned int capacity)
{
	struct string_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->capacity = capacity;
	table->slots = calloc(capacity + 1, sizeof(*table->slots));
	if (!table->slots) {
		free(table);
		errno = ENOMEM;
		return NULL;
	}
	return table;
}

void string_table__free(struct string_table *table)
{
	if (!table)
		return;
	for (unsigned int i = 1; i <= table->used; i++)
		free(table->slots[i].text);
	free(table->slots);
	free(table);
}

/* Eight bytes a step: names are hashed several times a slice, and most are long. */
static uint32_t hash_of(const char *text, size_t len)
{
	const uint64_t odd = 0x9e3779b97f4a7c15;
	uint64_t hash = len * odd, word;

	for (; len >= sizeof(word); text += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		hash = (hash ^ word) * odd;
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, text, len);
	hash = (hash ^ word) * odd;
	return (uint32_t)(hash >> 32);
}

static uint16_t *bucket_of(struct string_table *table, uint32_t hash)
{
	return &table->buckets[hash % BUCKETS];
}

static unsigned int find(struct string_table *table, const char *text, size_t len, uint32_t hash)
{
	unsigned int i = *bucket_of(table, hash);

	for (; i; i = table->slots[i].next) {
		const struct slot *slot = &table->slots[i];

		if (slot->hash == hash && slot->len == len && !memcmp(slot->text, text, len))
			break;
	}
	return i;
}

static void leave_list(struct string_table *table, unsigned int i)
{
	struct slot *slots = table->slots;

	slots[slots[i].older].newer = slots[i].newer;
	slots[slots[i].newer].older = slots[i].older;
}

static void become_newest(struct string_table *table, unsigned int i)
{
	struct slot *slots = table->slots;

	slots[i].older = slots[0].older;
	slots[i].newer = 0;
	slots[slots[i].older].newer = (uint16_t)i;
	slots[0].older = (uint16_t)i;
}

static void leave_bucket(struct string_table *table, unsigned int i)
{
	uint16_t *link = bucket_of(table, table->slots[i].hash);

	while (*link != i)
		link = &table->slots[*link].next;
	*link = table->slots[i].next;
}

static unsigned int take_slot(struct string_table *table)
{
	unsigned int oldest = table->slots[0].newer;

	if (table->used < table->capacity)
		return ++table->used;
	leave_list(table, oldest);
	leave_bucket(table, oldest);
	free(table->slots[oldest].text);
	return oldest;
}

unsigned int string_table__index(struct string_table *table, const char *text, size_t len,
				 bool *is_new)
{
	uint32_t hash = hash_of(text, len);
	unsigned int i = find(table, text, len, hash);
	uint16_t *bucket;
	char *copy;

	*is_new = !i;
	if (i) {
		leave_list(table, i);
		become_newest(table, i);
		return i;
	}
	copy = malloc(len + 1);
	if (!copy)
		return 0;
	memcpy(copy, text, len);
	i = take_slot(table);
	bucket = bucket_of(table, hash);
	table->slots[i] =
		(struct slot){.text = copy, .len = (uint32_t)len, .hash = hash, .next = *bucket};
	*bucket = (uint16_t)i;
	become_newest(table, i);
	return i;
}
