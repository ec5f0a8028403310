// SPDX-License-Identifier: MIT
#include "util/memory_limit.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>

/* To ask the allocator takes longer than a small allocation: it is asked once for so many bytes. */
#define STEP (1u << 20)

static uint64_t limit = UINT64_MAX, in_use_before;
static atomic_bool was_met;
static _Atomic size_t since_asked;

/* Of all arenas, and what is mapped for large ones. */
static uint64_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return (uint64_t)info.uordblks + info.hblkhd;
}

/* UINT64_MAX where the kernel does not tell. */
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
	limit = bytes ? bytes : three_quarters_of_available();
	in_use_before = in_use();
	atomic_store(&was_met, false);
}

uint64_t memory_limit__get(void)
{
	return limit;
}

static bool is_due(size_t more)
{
	if (more < STEP && atomic_fetch_add(&since_asked, more) < STEP)
		return false;
	atomic_store(&since_asked, 0);
	return true;
}

bool memory_limit__allows(size_t more)
{
	uint64_t now, used;

	if (limit == UINT64_MAX || !is_due(more))
		return true;
	now = in_use();
	used = now > in_use_before ? now - in_use_before : 0;
	if (used <= limit && more <= limit - used)
		return true;
	atomic_store(&was_met, true);
	return false;
}

bool memory_limit__was_met(void)
{
	return atomic_exchange(&was_met, false);
}
