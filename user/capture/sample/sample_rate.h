/* SPDX-License-Identifier: MIT */
/* How often may be sampled. */
#ifndef MTBPF_CAPTURE_SAMPLE_SAMPLE_RATE_H
#define MTBPF_CAPTURE_SAMPLE_SAMPLE_RATE_H

#include <stdint.h>

/* kernel/events/core.c: perf_swevent_init_hrtimer() takes no period below 10 us. */
#define SAMPLE_RATE_HIGHEST 100000

/*
 * The period for a rate in Hz, or for the highest that the kernel allows
 * (kernel.perf_event_max_sample_rate, which it lowers by itself where samples take too long); says
 * so then. Nanoseconds.
 */
uint64_t sample_rate__period(unsigned int wanted_hz);

/* The same, without the machine: max_hz 0 is no limit. */
unsigned int sample_rate__allowed(unsigned int wanted_hz, long max_hz);

#endif
