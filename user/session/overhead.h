/* SPDX-License-Identifier: MIT */
/* The cost of recording: measures it, and adapts the sampling rate to -max-overhead. */
#ifndef MTBPF_SESSION_OVERHEAD_H
#define MTBPF_SESSION_OVERHEAD_H

#include <stdbool.h>

#include "capture/sample/sample_cost.h"
#include "session/capture_options.h"
#include "target/process.h"

struct overhead {
	struct sample_cost cost;   /* measured before recording */
	unsigned int hz;	   /* current rate */
	unsigned int first_hz;	   /* rate at the start */
	unsigned int most_hz;	   /* a higher rate looks back too little; 0: no limit */
	struct sample_load seen;   /* the target's load counters at the last look */
	struct sample_load recent; /* a decaying sum: each update halves the older load */
	bool is_near_told;	   /* overhead__say_near() has warned */
	bool is_broken;		   /* no rate keeps -max-overhead; this has been reported */
	/* The counters at the last read, and their change per second. */
	struct overhead_counts {
		uint64_t time_ns, cpu_ns, switches, stacks, hits, go_waits;
	} counted, in_second;
	unsigned int n_dear; /* consecutive looks at which the probes cost too much */
};

/*
 * Returns the sampling rate in Hz: -sample-rate, or what -max-overhead allows; by default 1000, or
 * less if that would cost more than 5 % of a thread's time.
 */
unsigned int overhead__rate(const struct sample_options *options, const struct sample_cost *cost,
			    const struct sample_load *load);

/*
 * Measures the cost of samples with `stack` bytes of stack copy, and with kernel frames if `kernel`
 * is set, and the load of the processes (none if the program is not started yet). Stores the cost
 * and the rate in *overhead, which the caller has zeroed, and prints them. 0, or -errno after a
 * line and a hint.
 */
int overhead__measure(const struct sample_options *options, uint32_t stack, bool kernel,
		      const struct pid_set *pids, struct overhead *overhead);

#define OVERHEAD_TEXT_SIZE 192

/*
 * Warns once if the threshold (0: none; UINT64_MAX: not known yet) is so small that a call may be
 * over it only because a stack was taken in it.
 */
void overhead__say_near(struct overhead *o, uint64_t threshold_ns);

/*
 * Takes new load counters. If o->hz is far from what -max-overhead allows, changes it and returns
 * true. Warns once if -max-overhead cannot be kept.
 */
bool overhead__take(struct overhead *o, const struct sample_options *options,
		    const struct sample_load *now);

struct lookback_need {
	unsigned int hz;    /* current rate */
	uint64_t back_ns;   /* lookback of the rings at this rate */
	uint64_t need_ns;   /* lookback needed: twice the threshold */
	double clock_share; /* share of timed samples in what is written; switches are the rest */
	uint64_t size;	    /* ring size needed */
};

/*
 * Returns the rate below hz at which the rings look back as far as needed. 0 if there is no such
 * rate, or if a call as long as the threshold would have fewer than 50 stacks at it.
 */
unsigned int overhead__rate_to_look_back(const struct lookback_need *need);

/* Prints the final rate if it differs from the first. */
void overhead__say(const struct overhead *o, const struct sample_options *options);

#endif
