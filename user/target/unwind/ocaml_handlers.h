/* SPDX-License-Identifier: MIT */
/*
 * Finds OCaml's exception handlers: where a function continues when an exception leaves something
 * that it called.
 */
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

/* True if a call or a raise has its handler at vaddr. */
bool ocaml_handlers__is_one(struct elf_image *image, uint64_t vaddr);

/* Handlers of OCaml exceptions that the user lists: -ocaml-traps FILE. */

/* Run-time addresses, ascending. Begins as {0}. */
struct ocaml_traps {
	VEC(uint64_t) ips;
};

/*
 * Adds the addresses of one file: one hexadecimal address per line; blank lines, and text after a
 * '#', are skipped. 0, or -errno with a message: -EINVAL names the invalid line.
 */
int ocaml_traps__read(struct ocaml_traps *traps, const char *path);
void ocaml_traps__fini(struct ocaml_traps *traps);

bool ocaml_traps__has(const struct ocaml_traps *traps, uint64_t ip);

#endif
