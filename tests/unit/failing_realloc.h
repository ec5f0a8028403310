/* SPDX-License-Identifier: MIT */
/*
 * Lets one call of realloc(), with which vectors grow, fail. With sanitizers, which have a
 * realloc() of their own, no call fails.
 */
#ifndef MTBPF_TESTS_FAILING_REALLOC_H
#define MTBPF_TESTS_FAILING_REALLOC_H

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "sanitizers.h"

/* How many calls succeed before the one that fails; -1: none fails. */
static long realloc_left = -1;

#ifndef HAS_OWN_ALLOCATOR
void *realloc(void *old, size_t size)
{
	size_t old_size = old ? malloc_usable_size(old) : 0;
	void *moved;

	if (realloc_left >= 0 && !realloc_left--) {
		errno = ENOMEM;
		return NULL;
	}
	moved = malloc(size);
	if (moved && old) {
		memcpy(moved, old, old_size < size ? old_size : size);
		free(old);
	}
	return moved;
}
#endif

#endif
