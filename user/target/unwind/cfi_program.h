/* SPDX-License-Identifier: MIT */
/* Runs the program of a CIE or an FDE, as far as one place in the code. */
#ifndef MTBPF_TARGET_UNWIND_CFI_PROGRAM_H
#define MTBPF_TARGET_UNWIND_CFI_PROGRAM_H

#include "target/unwind/cfi.h"

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
