/* SPDX-License-Identifier: MIT */
/* -max-overhead while it is recorded: what the target does changes, and with it what is left. */
#ifndef MTBPF_SESSION_OVERHEAD_H
#define MTBPF_SESSION_OVERHEAD_H

#include <stdbool.h>

#include "capture/sample/sample_cost.h"
#include "session/capture_options.h"
#include "target/process.h"

struct overhead {
	struct sample_cost cost; /* measured before */
	unsigned int hz;	 /* the rate now, */
	unsigned int first_hz;	 /* and at the start */
	unsigned int most_hz;	 /* more would shorten the lookback too much; 0: any rate */
	struct sample_load seen; /* what the target had done when it was looked at last */
	struct sample_load lately;
	bool is_broken; /* no rate keeps it, which has been said */
	/* The counters when they were read last, and their change per second. */
	struct overhead_counts {
		uint64_t time_ns, cpu_ns, switches, stacks, hits;
	} counted, in_second;
	unsigned int n_dear; /* looks in a row at which the probes took too much */
};

/*
 * Returns the sampling rate in Hz: -sample-rate, or what -max-overhead allows; by default 1000, or
 * less if that would cost more than 5 % of a thread's time.
 */
unsigned int overhead__rate(const struct sample_options *options, const struct sample_cost *cost,
			    const struct sample_load *load);

/*
 * Measures the cost, with `stack` bytes of stack copies and the kernel's part of stacks if asked
 * for, for running processes (none: a program that is not started yet), and prints the rate and its
 * cost. Both are in *overhead, which the caller has zeroed. 0, or -errno after a line and a hint.
 */
int overhead__measure(const struct sample_options *options, uint32_t stack, bool kernel,
		      const struct pid_set *pids, struct overhead *overhead);

#define OVERHEAD_TEXT_SIZE 192

/*
 * Takes what the processes have done in all, and changes o->hz where that is far from what
 * -max-overhead allows: true then. Says once where it cannot be kept.
 */
bool overhead__take(struct overhead *o, const struct sample_options *options,
		    const struct sample_load *now);

struct lookback_need {
	unsigned int hz;    /* the rate now */
	uint64_t back_ns;   /* how far the rings look back at it, */
	uint64_t need_ns;   /* and should: twice the threshold */
	double clock_share; /* of what is written: the stacks by the clock; else it is switches' */
	uint64_t size;	    /* how large the rings had to be */
};

/*
 * The rate below hz at which the rings look back as far as needed. 0 if no rate does, or only one
 * at which a call of the threshold has fewer than 50 stacks.
 */
unsigned int overhead__rate_to_look_back(const struct lookback_need *need);

/* How it ended, where that is not how it began. */
void overhead__say(const struct overhead *o, const struct sample_options *options);

#endif
