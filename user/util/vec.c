// SPDX-License-Identifier: MIT
#include "util/vec.h"

#include <errno.h>
#include <stdint.h>

int vec__grow(void *v, size_t *cap, size_t n, size_t size)
{
	size_t want;
	void *bigger;

	if (n < *cap)
		return 0;
	want = *cap ? *cap * 2 : 16;
	if (want > SIZE_MAX / size)
		return -ENOMEM;
	bigger = realloc(*(void **)v, want * size);
	if (!bigger)
		return -ENOMEM;
	*(void **)v = bigger;
	*cap = want;
	return 0;
}
