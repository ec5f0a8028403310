/* SPDX-License-Identifier: MIT */
/* Pages of x86-64's memory, the small ones. */
#ifndef MTBPF_UTIL_PAGE_H
#define MTBPF_UTIL_PAGE_H

/* Signed, so that -PAGE is a mask as wide as what it masks. */
#define PAGE 4096L

/* An entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). */
#define PAGE_PRESENT (1ull << 63)
#define PAGE_SWAPPED (1ull << 62)
#define PAGE_FILE    (1ull << 61) /* not set: the process's own copy */

#endif
