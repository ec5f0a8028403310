/* SPDX-License-Identifier: MIT */
/* A growing array: struct { T *v; size_t n, cap; } of any element type. */
#ifndef MTBPF_UTIL_VEC_H
#define MTBPF_UTIL_VEC_H

#include <errno.h>
#include <stddef.h>
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

#endif
