/* SPDX-License-Identifier: MIT */
/* Where an OCaml function goes on when an exception comes out of something that it called. */
#ifndef MTBPF_TARGET_UNWIND_OCAML_HANDLERS_H
#define MTBPF_TARGET_UNWIND_OCAML_HANDLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/elf_image.h"

/*
 * The handler (vaddr) of an exception that leaves the call at vaddr, or is raised by the jump
 * there: any byte of the instruction. 0 where the function does not handle it, or that is not
 * known. A function is looked through by the first who asks for it; any number of threads may.
 */
uint64_t ocaml_handlers__find(struct elf_image *image, uint64_t vaddr);

/* Whether there is a call or a raise that has its handler at vaddr. */
bool ocaml_handlers__is_one(struct elf_image *image, uint64_t vaddr);

#endif
