/* SPDX-License-Identifier: MIT */
/*
 * Unwind rules from .eh_frame: how to find the caller's registers at a place in the code. DWARF 5,
 * 6.4 "Call Frame Information"; LSB Core 5.0, 10.6 "Exception Frames".
 */
#ifndef MTBPF_TARGET_UNWIND_CFI_H
#define MTBPF_TARGET_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "target/elf/elf_image.h"

/* DWARF's numbers (System V ABI, AMD64 supplement, figure 3.36). */
enum cfi_register {
	CFI_RBX = 3,
	CFI_RBP = 6,
	CFI_RSP = 7,
	CFI_R12 = 12,
	CFI_R13 = 13,
	CFI_R14 = 14,
	CFI_R15 = 15,
	CFI_RETURN = 16, /* where the caller goes on */
	CFI_REGISTERS = 17,
};

enum cfi_kind {
	CFI_SAME,	    /* the register still has the caller's value */
	CFI_UNDEFINED,	    /* the value is lost; for the return address: the outermost frame */
	CFI_AT_CFA,	    /* in memory, `offset` from the CFA */
	CFI_CFA_PLUS,	    /* the value is the CFA plus `offset` */
	CFI_REGISTER_PLUS,  /* in another register; for the CFA: that register plus `offset` */
	CFI_AT_EXPRESSION,  /* in memory, where the expression says */
	CFI_EXPRESSION,	    /* the value is the result of the expression */
	CFI_NOT_UNDERSTOOD, /* in a register that this machine does not have */
};

struct cfi_rule {
	uint8_t kind;  /* enum cfi_kind */
	uint8_t other; /* of CFI_REGISTER_PLUS */
	int64_t offset;
	const Dwarf_Op *ops; /* of an expression; valid as long as the image */
	size_t n;
};

/* One place in the code. The CFA is what the stack pointer is once the call has returned. */
struct cfi_row {
	struct cfi_rule cfa;
	struct cfi_rule registers[CFI_REGISTERS];
	bool is_signal; /* a signal frame: its caller was interrupted, and did not call */
};

/* False if vaddr is not described, or the description is invalid. Any number of threads may ask. */
bool cfi__find(struct elf_image *image, uint64_t vaddr, struct cfi_row *row);

/* The registers of one frame, and access to the memory of its thread. */
struct cfi_frame {
	uint64_t registers[CFI_REGISTERS];
	uint32_t known; /* bit i: registers[i] is known */
	bool (*read)(void *ctx, uint64_t address, uint64_t *word);
	void *ctx;
};

/*
 * The value of an expression. False if it needs an unknown value (the CFA, if that is NULL), or
 * uses jumps or divisions, which compilers do not emit here.
 */
bool cfi_expression__value(const Dwarf_Op *ops, size_t n, const struct cfi_frame *frame,
			   const uint64_t *cfa, uint64_t *value);

#endif
