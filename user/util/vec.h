/* SPDX-License-Identifier: MIT */
/* A growing array: struct { T *v; size_t n, cap; } of any element type. */
#ifndef MTBPF_UTIL_VEC_H
#define MTBPF_UTIL_VEC_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VEC(T)                                                                                     \
	struct {                                                                                   \
		T *v;                                                                              \
		size_t n, cap;                                                                     \
	}

/* Makes room for one more element of `size` bytes. Returns 0 or -ENOMEM. */
int vec__grow(void *v, size_t *cap, size_t n, size_t size);

/* A pointer to a new, uninitialised last element, or NULL where memory ran out. */
#define VEC_PUSH(vec)                                                                              \
	((vec)->n >= (vec)->cap && vec__grow(&(vec)->v, &(vec)->cap, (vec)->n, sizeof(*(vec)->v))  \
		 ? NULL                                                                            \
		 : &(vec)->v[(vec)->n++])

/* Adds an element of that value. 0 or -ENOMEM. */
#define VEC_ADD(vec, ...)                                                                          \
	({                                                                                         \
		__typeof__((vec)->v) added_ = VEC_PUSH(vec);                                       \
                                                                                                   \
		if (added_)                                                                        \
			*added_ = (__VA_ARGS__);                                                   \
		added_ ? 0 : -ENOMEM;                                                              \
	})

/* Adds all elements of another one, or of any struct with `v` and `n`. 0 or -ENOMEM. */
#define VEC_ADD_ALL(vec, from)                                                                     \
	({                                                                                         \
		int err_ = 0;                                                                      \
                                                                                                   \
		for (size_t i_ = 0; i_ < (from)->n && !err_; i_++)                                 \
			err_ = VEC_ADD(vec, (from)->v[i_]);                                        \
		err_;                                                                              \
	})

/* Takes one out; those behind it move up. */
#define VEC_REMOVE(vec, i)                                                                         \
	memmove(&(vec)->v[i], &(vec)->v[(i) + 1], (--(vec)->n - (i)) * sizeof(*(vec)->v))

/* By qsort(3), which takes no null pointer: an empty array has no memory. */
#define VEC_SORT(vec, compare)                                                                     \
	do {                                                                                       \
		if ((vec)->n)                                                                      \
			qsort((vec)->v, (vec)->n, sizeof(*(vec)->v), compare);                     \
	} while (0)

/*
 * How many of the first elements `holds` is true of, found by halves: where it is true of one, it
 * is of all in front (C++'s std::partition_point). `each` names a pointer to the element there. So
 * VEC_PARTITION_POINT(&ranges, range, range->end <= addr) is the index of the first that ends
 * behind.
 */
#define VEC_PARTITION_POINT(vec, each, holds) PARTITION_POINT((vec)->v, (vec)->n, each, holds)

#define PARTITION_POINT(first, count, each, holds)                                                 \
	({                                                                                         \
		size_t low_ = 0, high_ = (count);                                                  \
                                                                                                   \
		while (low_ < high_) {                                                             \
			size_t middle_ = low_ + (high_ - low_) / 2;                                \
			__typeof__(&(first)[0]) each = &(first)[middle_];                          \
                                                                                                   \
			if (holds)                                                                 \
				low_ = middle_ + 1;                                                \
			else                                                                       \
				high_ = middle_;                                                   \
		}                                                                                  \
		low_;                                                                              \
	})

#define VEC_FINI(vec)                                                                              \
	do {                                                                                       \
		free((vec)->v);                                                                    \
		(vec)->v = NULL;                                                                   \
		(vec)->n = (vec)->cap = 0;                                                         \
	} while (0)

/* Finds things by a hash: which of them have it, by number. */

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

/* How much memory work may take whose need is not known before it is done: calls, of bytes of
 * trace. */

/*
 * From now on as many bytes as that may be allocated beside those that are now; 0: three quarters
 * of what the machine has left (MemAvailable of /proc/meminfo). Without a call there is no limit.
 */
void memory_limit__set(uint64_t bytes);
/* What was set last; UINT64_MAX: none. */
uint64_t memory_limit__get(void);

/*
 * Whether there is room for so many more, from any thread; it is looked at with each MiB that was
 * asked for. What is refused is remembered.
 */
bool memory_limit__allows(size_t more);
/* Whether something was refused since it was set, or since this was asked. */
bool memory_limit__was_met(void);

#endif
