/* SPDX-License-Identifier: MIT */
/* Probes, of whomever, that the kernel has made calls: what runs there is not what the file says.
 */
#ifndef MTBPF_CAPTURE_CODE_PATCHED_CODE_H
#define MTBPF_CAPTURE_CODE_PATCHED_CODE_H

#include <sys/types.h>

#include "capture/recording/recording.h"

/*
 * Adds the [uprobes-trampoline] pages of process pid, from the beginning on, and the calls to them
 * in the files it has mapped, as they are now. To be called behind code_copy__take(), which drops
 * what an earlier call has added. 0 or -ENOMEM.
 */
int patched_code__take(struct recording *rec, pid_t pid);

#endif
