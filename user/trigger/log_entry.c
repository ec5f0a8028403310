// SPDX-License-Identifier: MIT
#include "trigger/log_entry.h"

#include <string.h>

static uint64_t time_of(const void *entry)
{
	return __atomic_load_n((const uint64_t *)entry, __ATOMIC_ACQUIRE);
}

/* An entry that is overwritten this often while it is read is left out. */
#define TRIES 8

bool log_entry__copy(void *out, const void *entry, size_t size)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t time_ns = time_of(entry);

		if (!time_ns)
			return false;
		memcpy(out, entry, size);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (time_of(entry) == time_ns && !memcmp(out, entry, size))
			return true;
	}
	return false;
}
