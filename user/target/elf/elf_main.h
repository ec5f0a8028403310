/* SPDX-License-Identifier: MIT */
/* How a program's main() is called: glibc has its address from _start, so that no code names it. */
#ifndef MTBPF_TARGET_ELF_ELF_MAIN_H
#define MTBPF_TARGET_ELF_ELF_MAIN_H

#include <stdint.h>

#include "target/elf/elf_image.h"

/*
 * Of __libc_start_main(): the vaddr, in its file, behind the instruction that calls main(): its
 * own, or since glibc 2.34 of a function that it calls, __libc_start_call_main(), which has no
 * symbol in a stripped libc. 0: not found.
 */
uint64_t elf_main__behind_call(const struct function *start_main);

#endif
