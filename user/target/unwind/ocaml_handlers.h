/* SPDX-License-Identifier: MIT */
/*
 * Finds the exception handlers of OCaml functions, from the compiler's notes and from the code.
 * Callers ask for them through landing_pads.h.
 */
#ifndef MTBPF_TARGET_UNWIND_OCAML_HANDLERS_H
#define MTBPF_TARGET_UNWIND_OCAML_HANDLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/elf_image.h"
#include "util/vec.h"

typedef VEC(uint64_t) vaddr_vec;

/* True if one of the addresses is in [first, last]. They must be sorted, the lowest first. */
bool vaddr_vec__has(const vaddr_vec *vaddrs, uint64_t first, uint64_t last);

/*
 * .note.ocaml_eh: where OxCaml's compiler says that it set up trap frames, took them down, and put
 * their handlers. Each list ascends.
 */
struct ocaml_note {
	vaddr_vec handlers, pushes, pops;
};

/* The caller holds image->lock. Empty if the note is missing or damaged. 0 or -ENOMEM. */
int ocaml_note__read(struct elf_image *image, struct ocaml_note *note);
void ocaml_note__fini(struct ocaml_note *note);

/* A call, or the jump of a raise, whose exception the function handles itself. */
struct handler_site {
	uint64_t start, end; /* of the instruction */
	uint64_t handler;
};
typedef VEC(struct handler_site) handler_site_vec;

/*
 * Follows the function's instructions from its entry on, and adds its sites, ascending. A handler
 * is claimed only where all ways to a site have it. The caller must not hold image->lock. 0 or
 * -ENOMEM.
 */
int ocaml_flow__find_sites(struct elf_image *image, const struct function *f,
			   const struct ocaml_note *note, handler_site_vec *sites);

/* Handlers of OCaml exceptions that the user lists: -ocaml-traps FILE. */

/* Run-time addresses, ascending. Begins as {0}. */
struct ocaml_traps {
	vaddr_vec ips;
};

/*
 * Adds the addresses of one file: one hexadecimal address per line; blank lines, and text after a
 * '#', are skipped. 0, or -errno with a message: -EINVAL names the invalid line.
 */
int ocaml_traps__read(struct ocaml_traps *traps, const char *path);
void ocaml_traps__fini(struct ocaml_traps *traps);

bool ocaml_traps__has(const struct ocaml_traps *traps, uint64_t ip);

#endif
