/* SPDX-License-Identifier: MIT */
/* Clocks: a monotonic one for all timing, and the wall clock for what people read. */
#ifndef MTBPF_UTIL_CLOCK_H
#define MTBPF_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds: the clock of bpf_ktime_get_ns(). */
static inline uint64_t clock__now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* CLOCK_REALTIME in nanoseconds since 1970: only for what people read. */
static inline uint64_t clock__unix_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
