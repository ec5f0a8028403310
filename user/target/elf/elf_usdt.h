/* SPDX-License-Identifier: MIT */
/*
 * USDT probes: places that a program was built with to be probed (sys/sdt.h), which its notes in
 * .note.stapsdt tell of. The notes may be anybody's: one that makes no sense is passed over.
 */
#ifndef MTBPF_TARGET_ELF_ELF_USDT_H
#define MTBPF_TARGET_ELF_ELF_USDT_H

#include <stdint.h>

#include "target/elf/elf_image.h"

/* One place; a probe may have several. The strings live as long as the image. */
struct usdt_place {
	const char *provider, *name;
	const char *args;	   /* where they are: "-4@%eax 8@-24(%rbp)" */
	uint64_t vaddr;		   /* of the instruction */
	uint64_t semaphore_offset; /* in the file: to be counted up while it is probed; 0: none */
};

/* Calls fn for every place, in the order of the notes, until it returns non-zero, and returns that.
 */
int elf_image__each_usdt(struct elf_image *image,
			 int (*fn)(void *ctx, const struct usdt_place *place), void *ctx);

#endif
