/* SPDX-License-Identifier: MIT */
/* Why a function was not found, and what to do: scripts and bytecode, missing packages, names. */
#ifndef MTBPF_TARGET_SYMBOLS_HINTS_H
#define MTBPF_TARGET_SYMBOLS_HINTS_H

#include <stdbool.h>

#include "target/symbols/query.h"
#include "target/symbols/symbols.h"

/*
 * If an interpreter or a JIT compiler is in the process (known by the names of its files, or by its
 * symbols), says what shows the functions that it runs. Otherwise false.
 */
bool symbols__hint_scripts(const struct symbols *symbols);

#define DEB_PACKAGE_SIZE 128

/*
 * Finds the package below `root` ("" or "/proc/PID/root") that installed `path`, without its
 * architecture. Reads a bounded part of the database, which may be hostile. 0, or -ENOENT if not
 * found.
 */
int deb_package__owning(const char *root, const char *path, char name[static DEB_PACKAGE_SIZE]);

/*
 * Says why the function may be missing: it is a script's, or the program is stripped (then, which
 * package has the symbols, and that system calls need none). Otherwise prints nothing.
 */
void symbols__hint_missing(const struct symbols *symbols);

/* Prints one line and a hint on why nothing was found. Returns -ENODATA or -ENOENT. */
int symbols__refuse_unknown(const struct symbols *symbols, const struct query *query);
/* Lists the candidates. Returns -ENOTUNIQ. */
int symbols__refuse_ambiguous(const struct symbols *symbols, const struct query *query,
			      const match_vec *found);

#endif
