/* SPDX-License-Identifier: MIT */
/* From the kernel's books of quotas and stolen time to the recording. */
#ifndef MTBPF_SESSION_TAKEN_TIME_H
#define MTBPF_SESSION_TAKEN_TIME_H

#include "capture/recording/recording.h"
#include "trigger/pressure.h"

/*
 * Adds what was taken from the threads that rec knows, as far as it was over when rec was frozen.
 * NULL: nothing is known. 0 or -errno.
 */
int taken_time__note(const struct pressure *pressure, struct recording *rec);

#endif
