/* SPDX-License-Identifier: MIT */
/* The intel_pt PMU as described in sysfs, and the config for a recording. */
#ifndef MTBPF_CAPTURE_PT_PMU_H
#define MTBPF_CAPTURE_PT_PMU_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recording/recording.h"

#define PT_PMU_PATH "/sys/bus/event_source/devices/intel_pt"

/* The bits of a setting in attr.config (format/NAME: "config:14-17"); width 0: the PMU lacks it. */
struct pt_field {
	uint8_t shift, width;
};

struct pt_pmu {
	uint32_t type;
	struct pt_field pt, cyc, mtc, tsc, noretcomp, branch, mtc_period, cyc_thresh, psb_period;
	struct pt_field ptw, fup_on_ptw, pwr_evt, event;
	/* caps/: mtc_periods, cycle_thresholds and psb_periods are bitmaps of legal values. */
	uint32_t cap_mtc, cap_psb_cyc, cap_mtc_periods, cap_cycle_thresholds, cap_psb_periods;
	uint32_t cap_ptwrite, cap_power_events, cap_event_trace;
	uint32_t max_nonturbo_ratio;
	uint32_t tsc_art_num, tsc_art_den; /* CPUID 15H EBX, EAX */
};

/* Reads the PMU's description. 0 or -errno: -ENOENT: there is no such PMU. Prints nothing. */
int pt_pmu__read(struct pt_pmu *pmu);

/* Reads one file of caps/. 0; -ENOENT if this kernel lacks it. */
int pt_pmu__read_cap(const char *name, uint32_t *value);

/*
 * Fills in what a decoder must know about streams that are recorded with this config on this
 * machine.
 */
void pt_pmu__describe(const struct pt_pmu *pmu, uint64_t config, struct rec_pt_config *out);

/* -timer-resolution: the timing packets, and the event's config for them. */

/*
 * Fields are named as in the PMU's format/: the settings of IA32_RTIT_CTL (Intel SDM vol. 3,
 * 33.2.8.2).
 */
struct pt_timing {
	bool cyc, mtc, noretcomp;
	bool ptw, fup_on_ptw; /* values that programs write (PTWRITE), and where; if the CPU
				 supports it */
	bool pwr_evt;	      /* power events */
	bool event;	      /* events that interrupt a thread, if supported */
	unsigned int cyc_thresh, mtc_period, psb_period;
	bool exact; /* the user gave these values: they are used unchanged, or refused */
};

/* A cycle count with every packet, and MTC packets as often as the CPU supports. */
#define PT_TIMING_NORMAL                                                                           \
	{                                                                                          \
		.cyc = true, .mtc = true, .cyc_thresh = 1                                          \
	}

/*
 * Parses "low" (MTC packets only), "normal", "high" (also every return in full, so that each has a
 * time), or "custom:cyc=1,cyc_thresh=2,mtc=1,mtc_period=3,psb_period=0,noretcomp=1": perf's terms.
 * A term without a number is 1; a missing term is 0. 0, or -EINVAL after a line and a hint on
 * stderr.
 */
int pt_timing__parse(const char *text, struct pt_timing *timing);

/*
 * Sets attr.config for a branch trace with this timing. If the timing is not exact, uses the
 * nearest values that the PMU's caps allow, and warns if cycle packets are missing. 0, or -EINVAL
 * after a line and a hint: exact values, or power events, are not supported.
 * arch/x86/events/intel/pt.c: pt_event_valid().
 */
int pt_timing__config(const struct pt_timing *timing, const struct pt_pmu *pmu, uint64_t *config);

#endif
