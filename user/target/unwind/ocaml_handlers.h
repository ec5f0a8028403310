/* SPDX-License-Identifier: MIT */
/* Where an OCaml function goes on when an exception comes out of something that it called. */
#ifndef MTBPF_TARGET_UNWIND_OCAML_HANDLERS_H
#define MTBPF_TARGET_UNWIND_OCAML_HANDLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/elf_image.h"
#include "util/vec.h"

/*
 * The handler (vaddr) of an exception that leaves the call at vaddr, or is raised by the jump
 * there: any byte of the instruction. 0 where the function does not handle it, or that is not
 * known. A function is looked through by the first who asks for it; any number of threads may.
 */
uint64_t ocaml_handlers__find(struct elf_image *image, uint64_t vaddr);

/* Whether there is a call or a raise that has its handler at vaddr. */
bool ocaml_handlers__is_one(struct elf_image *image, uint64_t vaddr);

/* Handlers of OCaml exceptions that somebody knows of where no ELF file tells: -ocaml-traps FILE.
 */

/* Run-time addresses, ascending. Begins as {0}. */
struct ocaml_traps {
	VEC(uint64_t) ips;
};

/*
 * Adds a file's: one hexadecimal address a line; blank lines, and what follows a '#', are skipped.
 * 0, or -errno with a line: -EINVAL names the line that is none.
 */
int ocaml_traps__read(struct ocaml_traps *traps, const char *path);
void ocaml_traps__fini(struct ocaml_traps *traps);

bool ocaml_traps__has(const struct ocaml_traps *traps, uint64_t ip);

#endif
