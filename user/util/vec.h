/* SPDX-License-Identifier: MIT */
/*
 * A growing array: struct { T *v; size_t n, cap; } of any element type; an index by hash; and the
 * limit of memory that arrays respect.
 */
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

/* A pointer to a new, uninitialised last element, or NULL if memory ran out. */
#define VEC_PUSH(vec)                                                                              \
	((vec)->n >= (vec)->cap && vec__grow(&(vec)->v, &(vec)->cap, (vec)->n, sizeof(*(vec)->v))  \
		 ? NULL                                                                            \
		 : &(vec)->v[(vec)->n++])

/* Adds an element with that value. 0 or -ENOMEM. */
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

/* Inserts an element before number i. 0 or -ENOMEM. */
#define VEC_INSERT(vec, i, ...)                                                                    \
	({                                                                                         \
		const __typeof__(*(vec)->v) inserted_ = (__VA_ARGS__);                             \
		size_t at_ = (i);                                                                  \
		__typeof__((vec)->v) last_ = VEC_PUSH(vec), place_ = (vec)->v + at_;               \
                                                                                                   \
		if (last_) {                                                                       \
			memmove(place_ + 1, place_, (size_t)(last_ - place_) * sizeof(*place_));   \
			*place_ = inserted_;                                                       \
		}                                                                                  \
		last_ ? 0 : -ENOMEM;                                                               \
	})

/* Removes one element; later ones move up. */
#define VEC_REMOVE(vec, i)                                                                         \
	memmove(&(vec)->v[i], &(vec)->v[(i) + 1], (--(vec)->n - (i)) * sizeof(*(vec)->v))

/* Sorts with qsort(3), which does not accept NULL: an empty array has v = NULL. */
#define VEC_SORT(vec, compare)                                                                     \
	do {                                                                                       \
		if ((vec)->n)                                                                      \
			qsort((vec)->v, (vec)->n, sizeof(*(vec)->v), compare);                     \
	} while (0)

/* Sorts by a member of type uint64_t, ascending; and a vector of uint64_t. */
#define VEC_SORT_BY(vec, member) SORT_BY((vec)->v, (vec)->n, member)
#define VEC_SORT_U64(vec)	 vec__sort((vec)->v, (vec)->n, sizeof(uint64_t), 0)

#define SORT_BY(first, count, member)                                                              \
	({                                                                                         \
		_Static_assert(sizeof((first)->member) == sizeof(uint64_t), "not 64 bits");        \
		vec__sort(first, count, sizeof(*(first)), offsetof(__typeof__(*(first)), member)); \
	})

/* Sorts elements of `size` bytes by the uint64_t at `offset` of each. */
void vec__sort(void *v, size_t n, size_t size, size_t offset);

/*
 * The number of leading elements for which `holds` is true, by binary search: they must all precede
 * the others (C++'s std::partition_point). `each` names a pointer to the element.
 * VEC_PARTITION_POINT(&ranges, range, range->end <= addr) is the index of the first range that ends
 * after addr.
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

/*
 * A loop in which `each` points to one element after the other. VEC_EACH_WHILE() ends it before the
 * first element for which `holds` is false. The vector must not change meanwhile. `vec` points to
 * any struct that has `v` and `n`.
 */
#define VEC_EACH(vec, each) VEC_EACH_WHILE(vec, each, true)
#define VEC_EACH_WHILE(vec, each, holds)                                                           \
	for (__typeof__(*(vec)->v) *each = (vec)->v,                                               \
				   *each##_end_ = (vec)->n ? each + (vec)->n : each;               \
	     each < each##_end_ && (holds); each++)

/*
 * A pointer to the first element for which `holds` is true, or NULL. `each` names a pointer to the
 * element. VEC_FIND() takes a pointer to any struct that has `v` and `n`, ARRAY_FIND() an array.
 */
#define VEC_FIND(vec, each, holds) FIND_IN((vec)->v, (vec)->n, each, holds)
#define ARRAY_FIND(array, each, holds)                                                             \
	FIND_IN(array, sizeof(array) / sizeof((array)[0]), each, holds)

#define FIND_IN(first, count, each, holds)                                                         \
	({                                                                                         \
		__typeof__(*(first)) *each = (first), *found_ = NULL;                              \
                                                                                                   \
		for (size_t left_ = (count); left_ && !found_; left_--, each++)                    \
			if (holds)                                                                 \
				found_ = each;                                                     \
		found_;                                                                            \
	})

/*
 * Removes the elements for which `goes` is true; VEC_DROP_EACH() ends each of them with the
 * expression `end`. `each` names a pointer to the element.
 */
#define VEC_DROP(vec, each, goes) VEC_DROP_EACH(vec, each, goes, (void)0)
#define VEC_DROP_EACH(vec, each, goes, end)                                                        \
	do {                                                                                       \
		size_t kept_ = 0;                                                                  \
                                                                                                   \
		VEC_EACH(vec, each) {                                                              \
			if (goes)                                                                  \
				end;                                                               \
			else                                                                       \
				(vec)->v[kept_++] = *each;                                         \
		}                                                                                  \
		(vec)->n = kept_;                                                                  \
	} while (0)

/* Ends each element, to which `each` points, with the expression `end`; then the vector. */
#define VEC_FINI_EACH(vec, each, end)                                                              \
	do {                                                                                       \
		VEC_EACH(vec, each)                                                                \
			end;                                                                       \
		VEC_FINI(vec);                                                                     \
	} while (0)

/* Less than, equal to, or greater than 0, as b follows, equals or precedes a. */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/*
 * Defines a function for VEC_SORT() and qsort(3), which compares *x and *y, both const T, by the
 * expression: ORDER(by_size, struct file, COMPARE(y->size, x->size) ?: strcmp(x->name, y->name))
 * is the largest first, and files of one size by their names.
 */
#define ORDER(function, T, expression)                                                             \
	static int function(const void *x_, const void *y_)                                        \
	{                                                                                          \
		const __typeof__(T) *x = x_, *y = y_;                                              \
                                                                                                   \
		return expression;                                                                 \
	}

#define VEC_FINI(vec)                                                                              \
	do {                                                                                       \
		free((vec)->v);                                                                    \
		(vec)->v = NULL;                                                                   \
		(vec)->n = (vec)->cap = 0;                                                         \
	} while (0)

/* An index from hashes to the numbers of things. */

/* Zero-initialised is empty. */
struct hash_index {
	struct hash_slot {
		uint64_t hash;
		uint32_t number; /* 0: an empty slot */
	} * slots;
	size_t n, cap; /* cap: 0 or a power of two */
};

void hash_index__fini(struct hash_index *index);

/* Adds a thing's number, which is not 0, with its hash. 0 or -ENOMEM. */
int hash_index__add(struct hash_index *index, uint64_t hash, uint32_t number);

/*
 * The multiplier of hashes: an odd number whose bits lack any pattern, the fraction of the golden
 * ratio.
 */
#define HASH_ODD 0x9e3779b97f4a7c15ull

static inline uint64_t hash__mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * HASH_ODD;
	return hash ^ hash >> 32;
}

uint64_t hash__bytes(uint64_t hash, const void *bytes, size_t len);

/*
 * Returns the first number with that hash if *at is 0, then the next ones, then 0. Other things may
 * have the same hash: the caller compares.
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

/*
 * The first number with that hash for which `holds` is true, or 0. `each` names the number.
 */
#define HASH_FIND(index, hash, each, holds)                                                        \
	({                                                                                         \
		const uint64_t hash_ = (hash);                                                     \
		size_t at_ = 0;                                                                    \
		uint32_t each;                                                                     \
                                                                                                   \
		do                                                                                 \
			each = hash_index__next(index, hash_, &at_);                               \
		while (each && !(holds));                                                          \
		each;                                                                              \
	})

/*
 * A limit on the memory of work whose need is not known in advance, such as calls decoded from
 * bytes of trace.
 */

/*
 * Allows this many bytes in addition to those allocated now; 0: three quarters of the memory
 * available (MemAvailable of /proc/meminfo). Without a call memory is unlimited.
 */
void memory_limit__set(uint64_t bytes);
/* The limit set last; UINT64_MAX: unlimited. */
uint64_t memory_limit__get(void);

/*
 * True if `more` bytes fit. Any thread may call it. The allocator is asked once per MiB requested.
 * A refusal is remembered.
 */
bool memory_limit__allows(size_t more);
/* True if a request was refused since the limit was set or since the last call of this. */
bool memory_limit__was_met(void);

#endif
