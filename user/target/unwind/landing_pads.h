/* SPDX-License-Identifier: MIT */
/*
 * Finds landing pads: where a function continues when an exception leaves something that it called.
 */
#ifndef MTBPF_TARGET_UNWIND_LANDING_PADS_H
#define MTBPF_TARGET_UNWIND_LANDING_PADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/elf_image.h"

/*
 * The landing pad (vaddr) of an exception that leaves the call at vaddr, or is raised by OCaml's
 * jump there: any byte of the instruction, such as the one before the return address. 0 if the
 * exception passes through or the pad is unknown. The first call builds the table, and the first
 * one for an OCaml function follows its code; any number of threads may ask.
 */
uint64_t landing_pads__find(struct elf_image *image, uint64_t vaddr);

enum pad_kind {
	PAD_NONE,
	PAD_EXCEPTION, /* of C++, of Rust */
	PAD_RAISE,     /* a handler of OCaml's exceptions */
};

/* Tells whether a call, or a raise, has its landing pad at vaddr. */
enum pad_kind landing_pads__kind(struct elf_image *image, uint64_t vaddr);

/*
 * A function's table of call sites, which its personality routine reads when an exception comes
 * through: .gcc_except_table, the same for C++, Rust and C (GCC: libgcc/unwind-pe.h and
 * libstdc++-v3/libsupc++/eh_personality.cc; "Exception Handling ABI for Itanium", 7).
 */

/* Bytes to be read in order, at vaddr in the image. */
struct eh_bytes {
	const uint8_t *at, *end;
	uint64_t vaddr; /* of `at` */
};

/*
 * Reads a DW_EH_PE_* encoded address (LSB Core 5.0, 10.5.1), based on nothing or on its own place,
 * and moves on. False for others, such as those in memory that the loader fills, and where the
 * bytes end before the value does. DW_EH_PE_omit is 0, as is a null.
 */
bool eh_bytes__pointer(struct eh_bytes *bytes, uint8_t encoding, uint64_t *value);

/* The call sites of one function, or of one part of it. */
struct lsda {
	struct eh_bytes sites;
	uint8_t encoding;
	uint64_t start, pads; /* what call sites and landing pads count from */
};

/* Calls in [start, end). */
struct lsda_site {
	uint64_t start, end;
	uint64_t pad; /* where an exception from these calls lands; 0: it passes to the caller */
};

/*
 * Opens the call sites of the function at start. They begin at `table`, which may extend past them.
 * False if they cannot be read.
 */
bool lsda__open(struct lsda *lsda, struct eh_bytes table, uint64_t start);
/* Reads the next call site; compilers write them in ascending order. False at the end. */
bool lsda__next(struct lsda *lsda, struct lsda_site *site);

#endif
