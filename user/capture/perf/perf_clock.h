/* SPDX-License-Identifier: MIT */
/* Compares perf's clock (sched_clock) with the TSC of PT packets and with BPF's CLOCK_MONOTONIC. */
#ifndef MTBPF_CAPTURE_PERF_PERF_CLOCK_H
#define MTBPF_CAPTURE_PERF_PERF_CLOCK_H

#include <linux/perf_event.h>
#include <stdint.h>

#include "capture/recording/recording.h"

/* The same moment on three clocks. */
struct clock_point {
	uint64_t tsc, perf_ns, monotonic_ns;
};

/*
 * Reads all three clocks. perf's clock cannot be read directly: a COMM record of this thread has
 * its time. 0 or -errno.
 */
int perf_clock__now(struct clock_point *point);

/*
 * Sets the conversion from TSC to perf time in config: the kernel's numbers if it gives them
 * (cap_user_time_zero), otherwise a line through the two points, which should be at least 10 ms
 * apart.
 */
void perf_clock__describe(struct rec_pt_config *config, const struct perf_event_mmap_page *page,
			  const struct clock_point *first, const struct clock_point *last);

/*
 * Opens an event on the current CPU that overflows every period_ns, whichever thread runs there,
 * for an attached BPF program. It takes no samples. Returns a descriptor, or -errno.
 */
int perf_clock__open_timer(uint64_t period_ns);

#endif
