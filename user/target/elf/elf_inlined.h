/* SPDX-License-Identifier: MIT */
/* Functions that the compiler put into others, by an image's DWARF. */
#ifndef MTBPF_TARGET_ELF_INLINED_H
#define MTBPF_TARGET_ELF_INLINED_H

#include "target/elf/elf_image.h"

/* One call that was inlined: the same pointer for the life of its image. */
struct inlined {
	const struct function *function; /* FUNCTION_INLINED */
	const struct inlined *outer;	 /* the inlined call that this one is made in, or NULL */
	struct source_place call;	 /* the place of the call; file is NULL where not known */
	unsigned int depth;		 /* number of inlined calls that contain it */
};

/*
 * The innermost inlined call that contains the instruction at vaddr. NULL if it is not inlined, or
 * without debug info, or if that is damaged or too long to read.
 */
const struct inlined *elf_image__inlined_at(struct elf_image *image, uint64_t vaddr);

#endif
