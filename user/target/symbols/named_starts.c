// SPDX-License-Identifier: MIT
/* Where functions begin, by page: they come in any order, and are asked for all the while. */
#include "target/symbols/named_internal.h"

#include <errno.h>
#include <string.h>

#define PAGE_BITS 12
/* What has no name is no longer than that, or nothing is known of it. */
#define LONGEST_PAGES 16

static struct named_page *find_page(const struct named_image *image, uint64_t page)
{
	uint64_t hash = hash__mix(image->seed, page);
	size_t at = 0;
	uint32_t number;

	while ((number = hash_index__next(&image->by_page, hash, &at)))
		if (image->pages.v[number - 1].page == page)
			return &image->pages.v[number - 1];
	return NULL;
}

static struct named_page *add_page(struct named_image *image, uint64_t page)
{
	struct named_page *added = image->pages.n < UINT32_MAX ? VEC_PUSH(&image->pages) : NULL;

	if (!added)
		return NULL;
	*added = (struct named_page){.page = page};
	if (hash_index__add(&image->by_page, hash__mix(image->seed, page),
			    (uint32_t)image->pages.n))
		return NULL;
	return added;
}

/* How many begin at or before `at`. */
static size_t count_to(const struct named_page *page, uint64_t at)
{
	return VEC_PARTITION_POINT(&page->starts, e, e->at <= at);
}

int named_image__add_start(struct named_image *image, uint64_t at, struct named_function *function)
{
	struct named_page *page = find_page(image, at >> PAGE_BITS);
	struct named_start *added;
	size_t n;

	if (!page)
		page = add_page(image, at >> PAGE_BITS);
	if (!page)
		return -ENOMEM;
	n = count_to(page, at);
	if (n && page->starts.v[n - 1].at == at) {
		/* The code was replaced, or has two names: the newer one is what is there. */
		page->starts.v[n - 1].function = function;
		return 0;
	}
	added = VEC_PUSH(&page->starts);
	if (!added)
		return -ENOMEM;
	memmove(&page->starts.v[n + 1], &page->starts.v[n],
		(page->starts.n - 1 - n) * sizeof(*page->starts.v));
	page->starts.v[n] = (struct named_start){at, function};
	return 0;
}

struct named_function *named_image__last_start(const struct named_image *image, uint64_t ip)
{
	uint64_t last = ip >> PAGE_BITS;

	for (uint64_t i = 0; i < LONGEST_PAGES && i <= last; i++) {
		const struct named_page *page = find_page(image, last - i);
		size_t n = page ? count_to(page, ip) : 0;

		if (n)
			return page->starts.v[n - 1].function;
	}
	return NULL;
}
