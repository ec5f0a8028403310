/* SPDX-License-Identifier: MIT */
/* The branches that a CPU notes by itself: last branch records (Intel SDM vol. 3, 18.4; AMD's
 * LbrExtV2). */
#ifndef MTBPF_CAPTURE_SAMPLE_LAST_BRANCHES_H
#define MTBPF_CAPTURE_SAMPLE_LAST_BRANCHES_H

#include <stdbool.h>

#include "capture/perf/event_place.h"

/*
 * An event that has the CPU note a thread's branches while it runs, disabled; it never samples. A
 * descriptor, or -errno: EOPNOTSUPP, ENOENT, EINVAL: the CPU has no such thing, or does not hand it
 * to this guest. Prints nothing.
 */
int last_branches__open(const struct event_place *place);
/* Whether it can be opened here, tried on ourselves. */
bool last_branches__are_noted(void);

#endif
