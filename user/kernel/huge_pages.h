/* SPDX-License-Identifier: MIT */
/*
 * Large pages for large memory: else the kernel takes longer to hand out the pages, one by one,
 * than what fills them. Where there are none to be had, nothing changes.
 */
#ifndef MTBPF_KERNEL_HUGE_PAGES_H
#define MTBPF_KERNEL_HUGE_PAGES_H

#include <stddef.h>

/* For free(). NULL: no memory. */
void *huge_pages__alloc(size_t size);
/* What malloc() or realloc() has just returned. */
void huge_pages__use(void *memory);

/*
 * What lies from one to the other is not needed any more, though it is not freed yet: what of it
 * fills pages goes back to the kernel. Its content is undefined.
 */
void huge_pages__give_back(void *from, const void *to);

#endif
