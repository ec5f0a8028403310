// SPDX-License-Identifier: MIT
#include "kernel/huge_pages.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "util/page.h"

#define HUGE_PAGE ((uintptr_t)2 << 20)

void *huge_pages__alloc(size_t size)
{
	void *memory;

	if (size < HUGE_PAGE)
		return malloc(size ? size : 1);
	if (posix_memalign(&memory, HUGE_PAGE, size))
		return NULL;
	madvise(memory, size, MADV_HUGEPAGE);
	return memory;
}

/*
 * All of its mapping, of which malloc's own head is the beginning: a part of it would be a mapping
 * of its own, and realloc() could not move the two any more but by copying them.
 */
void huge_pages__use(void *memory)
{
	uintptr_t start = (uintptr_t)memory & -PAGE;
	uintptr_t end = ((uintptr_t)memory + malloc_usable_size(memory)) & -PAGE;

	if (end > start && end - start >= 2 * HUGE_PAGE)
		madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* Whole large pages: to take some of one apart would cost more than it gives. */
void huge_pages__give_back(void *from, const void *to)
{
	uintptr_t start = ((uintptr_t)from + HUGE_PAGE - 1) & -HUGE_PAGE;
	uintptr_t end = (uintptr_t)to & -HUGE_PAGE;

	if (end > start)
		madvise((void *)start, end - start, MADV_DONTNEED);
}
