/* SPDX-License-Identifier: MIT */
/* Finds the function's callers in the code of its file. */
#ifndef MTBPF_TARGET_ELF_ELF_CALLERS_H
#define MTBPF_TARGET_ELF_ELF_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/function.h"

/*
 * All call instructions in its file that can call a function. They are known if the loaded part of
 * the file refers to it only by calls, ELF_CALLERS_MAX at most, apart from the symbol that exports
 * it. None: it may also be called from elsewhere, or the callers are unknown: large files are not
 * searched, and a file is searched for a limited number of functions. The first search takes some
 * milliseconds.
 */
struct elf_callers elf_callers__of(const struct function *function);

/*
 * False if the loaded part of the file does not contain this text with its end: the file neither
 * imports nor looks up a function of this name. Large files are not searched: true.
 */
bool elf_image__may_hold_text(const struct elf_image *image, const char *text);

/* The call of main(): glibc gets main()'s address from _start, so that no call instruction names
 * it. */

/*
 * For __libc_start_main(): the vaddr after the instruction that calls main(). Since glibc 2.34
 * __libc_start_call_main() makes that call; a stripped libc lacks its symbol. 0: not found.
 */
uint64_t elf_main__behind_call(const struct function *start_main);

#endif
