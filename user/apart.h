/* SPDX-License-Identifier: MIT */
/* Reads untrusted input without the rights that it does not need, or in a process of its own. */
#ifndef MTBPF_APART_H
#define MTBPF_APART_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/recording/recording.h"

/*
 * Gives up all capabilities but those to open files, including files of other processes. Call it
 * before a recording is read.
 */
void confine__reading(void);

/*
 * Confines this process (landlock__confine()): from now on only files in the folder of `path`
 * (NULL: none) can be written, and with is_folder also folders made and removed there; the roots
 * that the n recordings hold stay readable. Call it before decoding and before any thread starts.
 * Without Landlock in the kernel it does nothing, which -v reports: only confine__reading()
 * applies.
 */
void confine__decoding(const char *path, bool is_folder, const struct recording *const *recs,
		       size_t n);

/*
 * Runs work(context) in a forked child that gives up rights that it does not need, waits for it,
 * and returns its result. Changes in memory are lost. Call it while interrupts are held: the child
 * starts with them held, and gets the signals that come. A signal that ends the child ends this
 * process in the same way. Returns -EIO if the child crashed, or another -errno if it could not be
 * started, after a message that calls the work `what`, and the hint.
 */
int apart__run(int (*work)(void *context), void *context, const char *what, const char *hint);

#endif
