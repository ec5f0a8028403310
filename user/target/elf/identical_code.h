/* SPDX-License-Identifier: MIT */
/* Functions that the linker has put at one address, because their code is the same (--icf). */
#ifndef MTBPF_TARGET_ELF_IDENTICAL_CODE_H
#define MTBPF_TARGET_ELF_IDENTICAL_CODE_H

#include <stdbool.h>

#include "target/elf/elf_internal.h"

/*
 * True if the debug info defines another function whose code is at the function's address, too: an
 * alias is not defined a second time. The caller holds the image's source_lock.
 */
bool function__is_folded(const struct function *function, struct elf_debug *debug);

#endif
