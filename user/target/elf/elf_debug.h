/* SPDX-License-Identifier: MIT */
/*
 * The DWARF of an image, as the parts that read it share it: lines, inlined functions. Everything
 * wants image->lock held. Units have lines where they are; the rest may be in a .dwo file.
 */
#ifndef MTBPF_TARGET_ELF_ELF_DEBUG_H
#define MTBPF_TARGET_ELF_ELF_DEBUG_H

#include "target/elf/elf_internal.h"

struct unit_range {
	uint64_t start, end;
	Dwarf_Off die;
};

struct inline_tables;

struct elf_debug {
	Elf *elf; /* of its own: libdw changes what compressed sections read as */
	Dwarf *dwarf;
	Dwarf *alt;		       /* what dwz has put apart, or NULL */
	VEC(struct unit_range) units;  /* ascending by start */
	struct inline_tables *inlines; /* of elf_inlined.c; NULL until they are asked for */
};

/* The image's, opened by the first who asks; NULL where it has none. */
struct elf_debug *elf_image__debug(struct elf_image *image);
/* The unit that covers vaddr. False where none does. */
bool elf_debug__unit_at(const struct elf_debug *debug, uint64_t vaddr, Dwarf_Die *unit);
/* To where the rest of the unit is, if that is another file which can be found (-gsplit-dwarf). */
void elf_debug__go_to_split(Dwarf_Die *unit);
/* elf_inlined.c */
void inline_tables__free(struct inline_tables *tables);

#endif
