/* SPDX-License-Identifier: MIT */
/* Handlers of OCaml exceptions that somebody knows of where no ELF file tells: -ocaml-traps FILE.
 */
#ifndef MTBPF_TARGET_UNWIND_OCAML_TRAPS_H
#define MTBPF_TARGET_UNWIND_OCAML_TRAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/vec.h"

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
