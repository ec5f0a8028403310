/* SPDX-License-Identifier: MIT */
/* Reads untrusted input without the rights that it does not need, or in a process of its own. */
#ifndef MTBPF_APART_H
#define MTBPF_APART_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/recording/recording.h"

/* Call before a recording is read: keeps only the capabilities to open files, those of other
 * processes included. */
void confine__reading(void);

/*
 * Call before decoding and before any thread starts: see landlock__confine(). After that only files
 * in the folder of `path` (NULL: none) can be written, and with is_folder folders made and removed
 * there; the roots that the n recordings hold stay readable. Without Landlock in the kernel only
 * confine__reading() applies, which -v reports.
 */
void confine__decoding(const char *path, bool is_folder, const struct recording *const *recs,
		       size_t n);

/*
 * Runs work(context) in a forked child that gives up rights that it does not need, waits for it,
 * and returns its result. Changes in memory are lost. Call it while interrupts are held: the child
 * starts with them held and gets those that come. A signal that ends the child ends this process in
 * the same way. After a message with the name `what`, and the hint: -EIO if it crashed, or another
 * -errno if it could not be started.
 */
int apart__run(int (*work)(void *context), void *context, const char *what, const char *hint);

#endif
