/* SPDX-License-Identifier: MIT */
/* The options of -source sample, as a part of struct capture_options. */
#ifndef MTBPF_SESSION_SAMPLE_OPTIONS_H
#define MTBPF_SESSION_SAMPLE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"

struct sample_options {
	int rate;		    /* in Hz; SAMPLE_RATE_AUTO: not given */
	const char *max_overhead;   /* "1%", "none"; NULL: not given */
	uint64_t max_overhead_ppm;  /* what sample_options__check() makes of it; 0: no limit */
	bool insists;		    /* "none": a probe stays, whatever it costs */
	int unwind;		    /* UNWIND_... */
	uint64_t syscall_thresh_ns; /* 0: none is noted */
	struct option_list also;    /* functions whose calls are recorded one by one */
};

enum { UNWIND_AUTO, UNWIND_FP, UNWIND_DWARF, UNWIND_LBR };
extern const char *const unwind_names[];

#define SAMPLE_RATE_AUTO    (-1)
#define SAMPLE_RATE_DEFAULT 1000u
/* -max-overhead, and what is to be looked back over, lower it no further. */
#define SAMPLE_RATE_LEAST 10u

#define SAMPLE_DEFAULTS                                                                            \
	{                                                                                          \
		.rate = SAMPLE_RATE_AUTO                                                           \
	}

#define SAMPLE_OPTION(member) offsetof(struct capture_options, sample.member)

#define OPTIONS_SAMPLE                                                                             \
	{"sample-rate",                                                                            \
	 NULL,                                                                                     \
	 0,                                                                                        \
	 OPT_INT,                                                                                  \
	 "HZ",                                                                                     \
	 "sample: stacks a second and thread, while it runs (1000, or what costs 5 %)",            \
	 SAMPLE_OPTION(rate),                                                                      \
	 NULL},                                                                                    \
		{"max-overhead",                                                                   \
		 NULL,                                                                             \
		 0,                                                                                \
		 OPT_STRING,                                                                       \
		 "P%",                                                                             \
		 "sample: fewer, where they and the probes' hits would cost more of the target's " \
		 "CPU time; measured here. Without: a probe that takes a fifth of it is removed; " \
		 "none: never",                                                                    \
		 SAMPLE_OPTION(max_overhead),                                                      \
		 NULL},                                                                            \
		{"unwind",                                                                         \
		 NULL,                                                                             \
		 0,                                                                                \
		 OPT_CHOICE,                                                                       \
		 "HOW",                                                                            \
		 "sample: callers by fp (frame pointers), dwarf (from copies of the "              \
		 "stack), lbr (as the CPU notes them), or auto: tried",                            \
		 SAMPLE_OPTION(unwind),                                                            \
		 unwind_names},                                                                    \
		{"also",                                                                           \
		 NULL,                                                                             \
		 0,                                                                                \
		 OPT_LIST,                                                                         \
		 "NAME",                                                                           \
		 "sample: calls of these functions (as -symbol; all of a glob, 64 at most) are "   \
		 "exact as well; costs the target two probes a call",                              \
		 SAMPLE_OPTION(also),                                                              \
		 NULL},                                                                            \
	{                                                                                          \
		"syscall-thresh", NULL, 0, OPT_DURATION, "D",                                      \
			"sample: system calls of at least that are slices, exact; costs every "    \
			"process half a microsecond a call",                                       \
			SAMPLE_OPTION(syscall_thresh_ns), NULL                                     \
	}

/* 0, or -EINVAL after a line and a hint. */
int sample_options__check(struct sample_options *options, const char *command);

#endif
