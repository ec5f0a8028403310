/* SPDX-License-Identifier: MIT */
/* Finds the function's callers in the code of its file. */
#ifndef MTBPF_TARGET_ELF_ELF_CALLERS_H
#define MTBPF_TARGET_ELF_ELF_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/function.h"

/*
 * Finds all call instructions in the function's file that can call it. They are known if nothing
 * else in the loaded part of the file refers to the function, except the symbol that exports it,
 * and if they are at most ELF_CALLERS_MAX. n = 0: the callers are unknown, or outside of the file.
 * Large files are not searched, and a file is searched for a limited number of functions. The first
 * search takes some milliseconds.
 */
struct elf_callers elf_callers__of(const struct function *function);

/*
 * False if the loaded part of the file does not contain this text with its terminating NUL: the
 * file neither imports nor looks up a function of this name. Large files are not searched: true.
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
