/* SPDX-License-Identifier: MIT */
/* Which trap frame is innermost at each point of an OCaml function. */
#ifndef MTBPF_TARGET_UNWIND_OCAML_FLOW_H
#define MTBPF_TARGET_UNWIND_OCAML_FLOW_H

#include <stdint.h>

#include "target/elf/elf_image.h"
#include "target/unwind/ocaml_note.h"
#include "util/vec.h"

/* A call, or the jump of a raise, whose exception the function handles itself. */
struct handler_site {
	uint64_t start, end; /* of the instruction */
	uint64_t handler;
};
typedef VEC(struct handler_site) handler_site_vec;

/*
 * Follows the function's instructions from its entry on, and adds its sites, ascending. A handler
 * is claimed only where all ways to a site have it. Must not hold image->lock. 0 or -ENOMEM.
 */
int ocaml_flow__find_sites(struct elf_image *image, const struct function *function,
			   const struct ocaml_note *note, handler_site_vec *sites);

#endif
