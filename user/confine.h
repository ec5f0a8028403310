/* SPDX-License-Identifier: MIT */
/* Gives up rights for good before untrusted input is read. */
#ifndef MTBPF_CONFINE_H
#define MTBPF_CONFINE_H

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

#endif
