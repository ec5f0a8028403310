/* SPDX-License-Identifier: MIT */
/* Where a function goes on when an exception comes out of something that it called. */
#ifndef MTBPF_TARGET_UNWIND_LANDING_PADS_H
#define MTBPF_TARGET_UNWIND_LANDING_PADS_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/elf_image.h"

/*
 * The landing pad (vaddr) of an exception that leaves the call at vaddr: any byte of the calling
 * instruction, such as the one before the return address. 0 where there is none, or none is known:
 * the exception passes through. The table is built by the first who asks; any number of threads
 * may.
 */
uint64_t landing_pads__find(struct elf_image *image, uint64_t vaddr);

/* Whether there is a call that has its landing pad at vaddr. */
bool landing_pads__is_one(struct elf_image *image, uint64_t vaddr);

#endif
