/* SPDX-License-Identifier: MIT */
/*
 * The table of functions and lines that Go's runtime walks stacks with: strip leaves it. Written by
 * cmd/link/internal/ld/pcln.go, read by runtime/symtab.go and debug/gosym/pclntab.go. The formats
 * of Go 1.2, 1.16, 1.18 and 1.20 are known. It is read when the image is opened, and does not
 * change then.
 */
#ifndef MTBPF_TARGET_ELF_ELF_GO_H
#define MTBPF_TARGET_ELF_ELF_GO_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/elf_internal.h"

struct go_table;

/* NULL: not a Go program, or the table is damaged, or memory ran out. */
struct go_table *go_table__open(const struct elf_image *image);
void go_table__free(struct go_table *go);

/* Adds its functions to the image's symbols. 0 or -ENOMEM. */
int go_table__add_functions(const struct go_table *go, struct elf_image *image);

/* The line of an instruction. False if unknown. */
bool go_table__source_at(const struct go_table *go, uint64_t vaddr, struct source_place *place);

/*
 * Calls fn for each place where the code of another line begins, until it returns non-zero, which
 * is returned.
 */
int go_table__each_line(const struct go_table *go,
			int (*fn)(void *ctx, uint64_t vaddr, const struct source_place *place),
			void *ctx);

#endif
