/* SPDX-License-Identifier: MIT */
/* Processes whose functions are a script's or bytecode's: no symbol table has those. */
#ifndef MTBPF_TARGET_SYMBOLS_HINTS_H
#define MTBPF_TARGET_SYMBOLS_HINTS_H

#include <stdbool.h>

#include "target/symbols/symbols.h"

/*
 * If an interpreter or a JIT compiler is in the process (known by the names of its files, or by its
 * symbols): hints at what shows the functions that it runs. False, and nothing, where none is.
 */
bool symbols__hint_scripts(const struct symbols *symbols);

/* Finds the Debian package that installed a file, in dpkg's database. */

#define DEB_PACKAGE_SIZE 128

/*
 * Finds the package below `root` ("" or "/proc/PID/root") that installed `path`, without its
 * architecture. Reads a bounded part of the database, which may be hostile. 0, or -ENOENT if not
 * found.
 */
int deb_package__owning(const char *root, const char *path, char name[static DEB_PACKAGE_SIZE]);

#endif
