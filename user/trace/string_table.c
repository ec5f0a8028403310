// SPDX-License-Identifier: MIT
#include "trace/string_table.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 65536

/* Slot 0 holds no string: it is the end of each chain. */
struct slot {
	char *text;
	uint32_t len, hash;
	uint16_t next; /* in its bucket's chain */
};

struct string_table {
	unsigned int capacity, used;
	uint32_t generation;
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

static void forget(struct string_table *table)
{
	for (unsigned int i = 1; i <= table->used; i++)
		free(table->slots[i].text);
	memset(table->buckets, 0, sizeof(table->buckets));
	table->used = 0;
}

void string_table__free(struct string_table *table)
{
	if (!table)
		return;
	forget(table);
	free(table->slots);
	free(table);
}

void string_table__make_room(struct string_table *table, unsigned int n)
{
	if (table->capacity - table->used >= n)
		return;
	forget(table);
	table->generation++;
}

uint32_t string_table__generation(const struct string_table *table)
{
	return table->generation;
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

unsigned int string_table__index(struct string_table *table, const char *text, size_t len,
				 bool *is_new)
{
	uint32_t hash = hash_of(text, len);
	unsigned int i = find(table, text, len, hash);
	uint16_t *bucket;
	char *copy;

	*is_new = !i;
	if (i)
		return i;
	copy = table->used < table->capacity ? malloc(len + 1) : NULL;
	if (!copy)
		return 0;
	memcpy(copy, text, len);
	i = ++table->used;
	bucket = bucket_of(table, hash);
	table->slots[i] =
		(struct slot){.text = copy, .len = (uint32_t)len, .hash = hash, .next = *bucket};
	*bucket = (uint16_t)i;
	return i;
}
