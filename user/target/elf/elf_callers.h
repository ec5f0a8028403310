/* SPDX-License-Identifier: MIT */
/* Finds a function's callers in the code of its file. */
#ifndef MTBPF_TARGET_ELF_ELF_CALLERS_H
#define MTBPF_TARGET_ELF_ELF_CALLERS_H

#include <stddef.h>
#include <stdint.h>

#include "target/elf/function.h"

/*
 * All call instructions that can call a function. They are known if the loaded part of its file
 * refers to it only by calls, ELF_CALLERS_MAX at most. None: it may also be called from elsewhere,
 * or the callers are unknown: large files are not searched, and a file is searched for a limited
 * number of functions. The first search takes some milliseconds.
 */
struct elf_callers elf_callers__of(const struct function *function);

/* The call of main(): glibc gets main()'s address from _start, so that no call instruction names
 * it. */

/*
 * For __libc_start_main(): the vaddr after the instruction that calls main(). Since glibc 2.34
 * __libc_start_call_main() makes that call; a stripped libc lacks its symbol. 0: not found.
 */
uint64_t elf_main__behind_call(const struct function *start_main);

#endif
