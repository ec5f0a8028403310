/* SPDX-License-Identifier: MIT */
/* What a file's code says of who calls its functions. */
#ifndef MTBPF_TARGET_ELF_ELF_CALLERS_H
#define MTBPF_TARGET_ELF_ELF_CALLERS_H

#include <stddef.h>
#include <stdint.h>

#include "target/elf/elf_image.h"

#define ELF_CALLERS_MAX 8

/* Call instructions, by the vaddrs behind them. */
struct elf_callers {
	uint64_t behind[ELF_CALLERS_MAX];
	size_t n;
};

/*
 * All that can call a function: if nothing in what is loaded of its file names it but calls, of
 * which there are ELF_CALLERS_MAX at most. None: it may be called from elsewhere, too, or that is
 * not known: large files are not looked through, and files are not asked about many functions.
 * Takes some milliseconds the first time.
 */
struct elf_callers elf_callers__of(const struct function *function);

/* How a program's main() is called: glibc has its address from _start, so that no code names it. */

/*
 * Of __libc_start_main(): the vaddr, in its file, behind the instruction that calls main(): its
 * own, or since glibc 2.34 of a function that it calls, __libc_start_call_main(), which has no
 * symbol in a stripped libc. 0: not found.
 */
uint64_t elf_main__behind_call(const struct function *start_main);

#endif
