/* SPDX-License-Identifier: MIT */
/*
 * The code the kernel puts into a probed process's [uprobes] mapping. Nobody can read that mapping
 * from outside, so we look at our own: a return probe on a function of ours makes the kernel map
 * the same page here.
 */
#ifndef MTBPF_CAPTURE_UPROBES_PAGE_H
#define MTBPF_CAPTURE_UPROBES_PAGE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Copies the page, at most size bytes. The count; 0 where no return probe can be set (rights, no
 * uprobe PMU), after a line on stderr.
 */
size_t uprobes_page__read(uint8_t *page, size_t size);

#endif
