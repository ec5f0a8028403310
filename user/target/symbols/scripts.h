/* SPDX-License-Identifier: MIT */
/* Processes whose functions are a script's or bytecode's: no symbol table has those. */
#ifndef MTBPF_TARGET_SYMBOLS_SCRIPTS_H
#define MTBPF_TARGET_SYMBOLS_SCRIPTS_H

#include <stdbool.h>

#include "target/symbols/symbols.h"

/*
 * If an interpreter or a JIT compiler is in the process (known by the names of its files, or by its
 * symbols): hints at what shows the functions that it runs. False, and nothing, where none is.
 */
bool symbols__hint_scripts(const struct symbols *symbols);

#endif
