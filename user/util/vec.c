// SPDX-License-Identifier: MIT
#include "util/vec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/memory_limit.h"

static bool is_allowed(size_t from, size_t to, size_t size)
{
	return to <= SIZE_MAX / size && memory_limit__allows((to - from) * size);
}

/* Twice as many; near the limit, a quarter more. 0: not even that. */
static size_t next_cap(size_t cap, size_t size)
{
	if (is_allowed(cap, cap ? cap * 2 : 16, size))
		return cap ? cap * 2 : 16;
	return is_allowed(cap, cap + cap / 4 + 1, size) ? cap + cap / 4 + 1 : 0;
}

int vec__grow(void *v, size_t *cap, size_t n, size_t size)
{
	size_t want;
	void *bigger;

	if (n < *cap)
		return 0;
	want = next_cap(*cap, size);
	bigger = want ? realloc(*(void **)v, want * size) : NULL;
	if (!bigger)
		return -ENOMEM;
	*(void **)v = bigger;
	*cap = want;
	return 0;
}
