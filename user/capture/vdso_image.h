/* SPDX-License-Identifier: MIT */
/* The code of the vdso, which is no file. */
#ifndef MTBPF_CAPTURE_VDSO_IMAGE_H
#define MTBPF_CAPTURE_VDSO_IMAGE_H

#include "capture/recording.h"
#include "target/process.h"

/*
 * Copies it from the process while that lives; NULL: ours, which is the same. 0 or -errno; a
 * process without one is no error.
 */
int vdso_image__add(struct recording *rec, const struct process *process);

#endif
