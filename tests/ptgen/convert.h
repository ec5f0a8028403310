/* SPDX-License-Identifier: MIT */
/* What the plugin left, as a recording. */
#ifndef MTBPF_TESTS_PTGEN_CONVERT_H
#define MTBPF_TESTS_PTGEN_CONVERT_H

#include "capture/recording/recording.h"
#include "shared.h"

/* Completes the streams of a process that is gone, and fills rec. 0 or -ENOMEM. */
int ptgen__convert(struct ptgen_shared *shared, struct recording *rec);

#endif
