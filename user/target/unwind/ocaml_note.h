/* SPDX-License-Identifier: MIT */
/*
 * .note.ocaml_eh: where OxCaml's compiler says that it set up trap frames, took them down, and put
 * their handlers.
 */
#ifndef MTBPF_TARGET_UNWIND_OCAML_NOTE_H
#define MTBPF_TARGET_UNWIND_OCAML_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/elf_internal.h"

typedef VEC(uint64_t) vaddr_vec;

/* vaddrs, each list ascending. */
struct ocaml_note {
	vaddr_vec handlers, pushes, pops;
};

/* Wants image->lock held. Empty where there is no note, or it is damaged. 0 or -ENOMEM. */
int ocaml_note__read(struct elf_image *image, struct ocaml_note *note);
void ocaml_note__fini(struct ocaml_note *note);

/* Whether [start, end) has one of them. */
bool vaddr_vec__has(const vaddr_vec *vaddrs, uint64_t start, uint64_t end);

#endif
