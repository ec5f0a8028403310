/* SPDX-License-Identifier: MIT */
/*
 * The inlined calls of an image and the functions they are of: one a name and place, however many
 * units have it from the same header. Everything wants image->lock held.
 */
#ifndef MTBPF_TARGET_ELF_ELF_INLINED_H
#define MTBPF_TARGET_ELF_ELF_INLINED_H

#include "target/elf/elf_debug.h"
#include "target/elf/elf_inlined_scopes.h"
#include "target/elf/inlined.h"

struct inlined_chunk;

struct inline_names {
	struct elf_image *image;
	void *functions; /* a tsearch() tree */
	struct inlined_chunk *calls;
	struct inline_scopes scopes;
};

/* `budget`: as in die_walk.h. */
void inline_names__init(struct inline_names *names, struct elf_image *image, uint64_t *budget);

void inline_names__fini(struct inline_names *names);

/*
 * What a DW_TAG_inlined_subroutine says, in `outer` if not NULL; one whose name cannot be found (it
 * may be in another file) is what it lies in. 0 or -ENOMEM.
 */
int inline_names__add(struct inline_names *names, Dwarf_Die *die, const struct inlined *outer,
		      const struct inlined **inlined);
/* Before anybody else sees it: its function gets its readable name. */
void inline_names__make_readable(const struct inlined *inlined);

#endif
