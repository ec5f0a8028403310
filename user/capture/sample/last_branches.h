/* SPDX-License-Identifier: MIT */
/*
 * What a CPU counts and notes by itself: its cycles, and with them the last branches (Intel SDM
 * vol. 3, 18.4: LBR; AMD's LbrExtV2), or the calls that have not returned (LBR's call stack mode,
 * Intel's since Haswell: arch/x86/events/intel/lbr.c).
 */
#ifndef MTBPF_CAPTURE_SAMPLE_LAST_BRANCHES_H
#define MTBPF_CAPTURE_SAMPLE_LAST_BRANCHES_H

#include <stdint.h>

#include "capture/perf/event_place.h"

enum counting {
	COUNTING_CYCLES,
	COUNTING_BRANCHES, /* and the last ones are noted */
	COUNTING_CALLS,	   /* and those that have not returned */
};

/* perf_event_attr.branch_sample_type; 0: none are noted. */
uint64_t counting__branches(enum counting counting);

/* Whether this can be opened here, tried on ourselves: 0, or -errno: EOPNOTSUPP, ENOENT, EINVAL:
 * the CPU has no such thing, or does not hand it to this guest. Prints nothing. */
int counting__try(enum counting counting);

/*
 * An event that has the CPU note a thread's last branches while it runs, disabled; it never
 * samples. A descriptor, or -errno as above. Prints nothing.
 */
int last_branches__open(const struct event_place *place);

#endif
