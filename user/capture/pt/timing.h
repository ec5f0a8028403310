/* SPDX-License-Identifier: MIT */
/* How much of an Intel PT buffer goes into timing: what the user says, and the config it becomes.
 */
#ifndef MTBPF_CAPTURE_PT_TIMING_H
#define MTBPF_CAPTURE_PT_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/pt/pmu.h"

/* Fields as in the PMU's format/: the settings of IA32_RTIT_CTL (Intel SDM vol. 3, 33.2.8.2). */
struct pt_timing {
	bool cyc, mtc, noretcomp;
	bool ptw, fup_on_ptw; /* values that programs write, and where they do: wherever it can be
				 had */
	bool pwr_evt;	      /* what the CPU does to save power */
	unsigned int cyc_thresh, mtc_period, psb_period;
	bool exact; /* the user's own numbers: to be had as they are, or refused */
};

/* A cycle count with every packet, and MTC packets as often as the CPU can. */
#define PT_TIMING_NORMAL                                                                           \
	{                                                                                          \
		.cyc = true, .mtc = true, .cyc_thresh = 1                                          \
	}

/*
 * "low" (MTC packets only), "normal", "high" (and every return in full: time at each), or
 * "custom:cyc=1,cyc_thresh=2,mtc=1,mtc_period=3,psb_period=0,noretcomp=1": perf's own terms; one
 * left out is 0, one without a number 1. 0, or -EINVAL after a line and a hint on stderr.
 */
int pt_timing__parse(const char *text, struct pt_timing *timing);

/*
 * attr.config of a user's branch trace with it. Where it is not exact, as near as the PMU's caps
 * allow, with a warning where cycle packets are missing; else -EINVAL after a line and a hint.
 * arch/x86/events/intel/pt.c: pt_event_valid().
 */
int pt_timing__config(const struct pt_timing *timing, const struct pt_pmu *pmu, uint64_t *config);

#endif
