/* SPDX-License-Identifier: MIT */
/* What reads what others wrote gives up, for good, the rights that it has no use for. */
#ifndef MTBPF_CONFINE_H
#define MTBPF_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/recording/recording.h"

/*
 * Before a recording is read: this process, whoever runs it, keeps of its capabilities those that
 * open files, of other processes too.
 */
void confine__reading(void);

/*
 * Before it is decoded, and before any thread starts: what landlock__confine() says. Written is
 * then beneath the folder of `path` alone (NULL: nowhere), and with is_folder folders are made and
 * removed there; the roots that the n recordings hold stay readable. Where the kernel has no
 * Landlock, all is as after confine__reading(), and a line for -v says so.
 */
void confine__decoding(const char *path, bool is_folder, const struct recording *const *recs,
		       size_t n);

#endif
