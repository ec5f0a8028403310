/* SPDX-License-Identifier: MIT */
/*
 * How to get from a place in the code to its caller, by .eh_frame: where each register that the
 * caller had is now. DWARF 5, 6.4 "Call Frame Information"; LSB Core 5.0, 10.6 "Exception Frames".
 */
#ifndef MTBPF_TARGET_UNWIND_CFI_H
#define MTBPF_TARGET_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	CFI_SAME,	    /* it is still there */
	CFI_UNDEFINED,	    /* it is lost; the return address: there is no caller */
	CFI_AT_CFA,	    /* in memory, `offset` from the CFA */
	CFI_CFA_PLUS,	    /* the CFA and `offset` */
	CFI_REGISTER_PLUS,  /* in another register; of the CFA: `offset` from it */
	CFI_AT_EXPRESSION,  /* in memory, where the expression says */
	CFI_EXPRESSION,	    /* what the expression gives */
	CFI_NOT_UNDERSTOOD, /* a rule of a kind that there is not */
};

struct cfi_rule {
	uint8_t kind;  /* enum cfi_kind */
	uint8_t other; /* of CFI_REGISTER_PLUS */
	int64_t offset;
	const uint8_t *expression; /* valid as long as the image */
	size_t len;
};

/* One place in the code. The CFA is what the stack pointer is once the call has returned. */
struct cfi_row {
	struct cfi_rule cfa;
	struct cfi_rule registers[CFI_REGISTERS];
	bool is_signal; /* the kernel calls it: what it "returns" to has not called */
};

/*
 * False where nothing describes vaddr, or what does makes no sense. Any number of threads may ask.
 */
bool cfi__find(struct elf_image *image, uint64_t vaddr, struct cfi_row *row);

/* Registers in a frame, and how to read the memory of its thread. */
struct cfi_frame {
	uint64_t registers[CFI_REGISTERS];
	uint32_t known; /* a bit a register */
	bool (*read)(void *ctx, uint64_t address, uint64_t *word);
	void *ctx;
};

/*
 * The value of an expression, with *first on its stack if that is not NULL. False where it needs
 * what is not known, or is of a kind that no compiler makes for this: with jumps or divisions.
 */
bool cfi_expression__value(const uint8_t *expression, size_t len, const struct cfi_frame *frame,
			   const uint64_t *first, uint64_t *value);

/* Runs the program of a CIE or an FDE, as far as one place in the code. */

struct cfi_program {
	const uint8_t *at, *end;
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t location;	       /* that the row is of; moves on */
	uint64_t until;		       /* the place asked for */
	const struct cfi_row *initial; /* what DW_CFA_restore* goes back to; NULL in a CIE */
};

/* Changes *row. False where the program is damaged, or of an unknown kind. */
bool cfi_program__run(struct cfi_program *program, struct cfi_row *row);

#endif
