/* SPDX-License-Identifier: MIT */
/*
 * The instructions that OCaml's compiler and runtime handle exceptions with, from 4.10 on (amd64
 * emit, runtime/amd64.S): %r14 is the domain's state, a slot of which, at an offset that differs
 * between versions, points to the innermost trap frame: the one before it, and the handler.
 */
#ifndef MTBPF_TARGET_UNWIND_OCAML_SHAPES_H
#define MTBPF_TARGET_UNWIND_OCAML_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/elf_image.h"
#include "util/insn_move.h"

/* The latest instructions of a straight line, the newest first. */
#define SHAPE_LENGTH 5
struct recent_moves {
	struct insn_move v[SHAPE_LENGTH];
};

void recent_moves__add(struct recent_moves *recent, struct insn_move move);

/*
 * The newest instruction has put up a trap frame: its handler's address, and the offset of the
 * slot. 0 where it has not.
 */
uint64_t recent_moves__pushed(const struct recent_moves *recent, int32_t *slot);
/* It has taken one down. */
bool recent_moves__popped(const struct recent_moves *recent, int32_t slot);
/* It has set the stack back to the innermost one: what follows takes that, and goes to its handler.
 */
bool recent_moves__raises(const struct recent_moves *recent, int32_t slot);
/* It is a switch's jump: the address of the table. 0 where it is none. */
uint64_t recent_moves__switches(const struct recent_moves *recent);

/* Some instruction of the function may put up a trap frame. Costs little. */
bool ocaml_shapes__may_push(const uint8_t *code, size_t len);

/* A call to this address does not come back: it raises. Must not hold image->lock. */
bool ocaml_shapes__is_raiser(struct elf_image *image, uint64_t vaddr);

#endif
