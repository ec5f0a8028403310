/* SPDX-License-Identifier: MIT */
/*
 * Names of C++ functions that have no symbol to be mangled (in anonymous namespaces, lambdas): by
 * what their entries lie in. Everything wants image->lock held.
 */
#ifndef MTBPF_TARGET_ELF_ELF_INLINED_SCOPES_H
#define MTBPF_TARGET_ELF_ELF_INLINED_SCOPES_H

#include "target/elf/elf_internal.h"

struct inline_scopes {
	struct elf_image *image;
	uint64_t *budget; /* as in die_walk.h */
	void *units;	  /* a tsearch() tree */
};

void inline_scopes__fini(struct inline_scopes *scopes);

/*
 * "ns::Foo::name" for the function of this entry, or of what it is an instance of; valid as long as
 * the image. `name` itself where it lies in nothing, or is of another language.
 */
const char *inline_scopes__qualify(struct inline_scopes *scopes, Dwarf_Die *die, const char *name);

#endif
