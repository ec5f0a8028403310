/* SPDX-License-Identifier: MIT */
/* The code of the vdso, which is no file. */
#ifndef MTBPF_CAPTURE_CODE_VDSO_IMAGE_H
#define MTBPF_CAPTURE_CODE_VDSO_IMAGE_H

#include "capture/recording/recording.h"
#include "target/process.h"

/*
 * Copies it from the process while that lives; NULL: ours, which is the same. 0 or -errno; a
 * process without one is no error.
 */
int vdso_image__add(struct recording *rec, const struct process *process);

/*
 * Of a recording that another tool made, and that has the vdso mapped but no copy of it: ours,
 * where it is the same, by its build id, or else by the release of the kernel that runs. 0 or
 * -errno; one that is not the same is no error, and not taken.
 */
int vdso_image__add_running(struct recording *rec);

#endif
