// SPDX-License-Identifier: MIT
#include "util/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_allowed(size_t from, size_t to, size_t size)
{
	return to <= SIZE_MAX / size && memory_limit__allows((to - from) * size);
}

int vec__grow(void *v, size_t *cap, size_t n, size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *bigger;

	if (n < *cap)
		return 0;
	/* Twice as many; near the limit, a quarter more, or not even that. */
	if (!is_allowed(*cap, want, size)) {
		want = *cap + *cap / 4 + 1;
		if (!is_allowed(*cap, want, size))
			return -ENOMEM;
	}
	bigger = realloc(*(void **)v, want * size);
	if (!bigger)
		return -ENOMEM;
	*(void **)v = bigger;
	*cap = want;
	return 0;
}

static int compare_u64(const void *a, const void *b, void *offset)
{
	uint64_t x, y;

	memcpy(&x, (const char *)a + *(size_t *)offset, sizeof(x));
	memcpy(&y, (const char *)b + *(size_t *)offset, sizeof(y));
	return (x > y) - (x < y);
}

void vec__sort(void *v, size_t n, size_t size, size_t offset)
{
	if (n)
		qsort_r(v, n, size, compare_u64, &offset);
}

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

static int grow_index(struct hash_index *index)
{
	struct hash_index bigger = {.cap = index->cap ? 2 * index->cap : FIRST_CAP};

	/* The old slots stay until the new ones are filled. */
	if (is_allowed(0, bigger.cap, sizeof(*bigger.slots)))
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
	/* Half of the slots stay empty, so that misses end quickly. */
	if (2 * (index->n + 1) > index->cap && grow_index(index))
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

/* Asking the allocator takes longer than a small allocation, so it is asked once per STEP bytes. */
#define STEP (1u << 20)

static uint64_t limit_bytes = UINT64_MAX, in_use_before;
static atomic_bool was_met;
static _Atomic size_t since_asked;

/* Bytes in all arenas and in separate mappings for large blocks. */
static uint64_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return (uint64_t)info.uordblks + info.hblkhd;
}

/* UINT64_MAX if the kernel does not report it. */
static uint64_t three_quarters_of_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t kb = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kb) == 1)
			break;
	if (file)
		fclose(file);
	return kb ? kb * 768 : UINT64_MAX;
}

void memory_limit__set(uint64_t bytes)
{
	limit_bytes = bytes ? bytes : three_quarters_of_available();
	in_use_before = in_use();
	atomic_store(&was_met, false);
}

uint64_t memory_limit__get(void)
{
	return limit_bytes;
}

bool memory_limit__allows(size_t more)
{
	uint64_t now, used;

	if (limit_bytes == UINT64_MAX ||
	    (more < STEP && atomic_fetch_add(&since_asked, more) < STEP))
		return true;
	atomic_store(&since_asked, 0);
	now = in_use();
	used = now > in_use_before ? now - in_use_before : 0;
	if (used <= limit_bytes && more <= limit_bytes - used)
		return true;
	atomic_store(&was_met, true);
	return false;
}

bool memory_limit__was_met(void)
{
	return atomic_exchange(&was_met, false);
}
