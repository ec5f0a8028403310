/* SPDX-License-Identifier: MIT */
/*
 * A function's table of call sites, which its personality routine reads when an exception comes
 * through: .gcc_except_table, the same for C++, Rust and C (GCC: libgcc/unwind-pe.h and
 * libstdc++-v3/libsupc++/eh_personality.cc; "Exception Handling ABI for Itanium", 7).
 */
#ifndef MTBPF_TARGET_LSDA_H
#define MTBPF_TARGET_LSDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes to be read one behind the other, which lie at vaddr in the image. */
struct eh_bytes {
	const uint8_t *at, *end;
	uint64_t vaddr; /* of `at` */
};

/* These move on, and give false where the bytes end before the value does, or it makes no sense. */
bool eh_bytes__uleb128(struct eh_bytes *bytes, uint64_t *value);
/*
 * A DW_EH_PE_* encoded address (LSB Core 5.0, 10.5.1), based on nothing or on its own place; others,
 * and those in memory that the loader fills, are false. DW_EH_PE_omit is 0, as is a null.
 */
bool eh_bytes__pointer(struct eh_bytes *bytes, uint8_t encoding, uint64_t *value);

/*
 * The landing pad of what calls at vaddr in the function, or the part of one, that begins at start.
 * `table` is its LSDA, and may go on behind it. 0: none.
 */
uint64_t lsda__find(struct eh_bytes table, uint64_t start, uint64_t vaddr);

#endif
