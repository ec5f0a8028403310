/* SPDX-License-Identifier: MIT */
/* The calls that a CPU has noted (COUNTING_CALLS), and what frame pointers show, to one stack. */
#ifndef MTBPF_CAPTURE_SAMPLE_NOTED_CALLS_H
#define MTBPF_CAPTURE_SAMPLE_NOTED_CALLS_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

/* No CPU has more. */
#define NOTED_CALLS_MAX 32

/*
 * ips[0 .. n_ips) is where it ran, and the return addresses that frame pointers led to. Becomes
 * where it ran; the call instructions that were noted, of `calls`, the latest first; and, from
 * where frame pointers lead on behind the last of these, the return addresses there. So a function
 * without a frame pointer does not hide its caller, and more calls than the CPU has room for are no
 * loss where there are frame pointers. Returns the new n_ips, `room` at most; *n_calls of them,
 * behind the first, are call instructions: 0 where none was noted.
 */
uint32_t noted_calls__join(const struct perf_branch_entry *calls, size_t n, uint64_t *ips,
			   uint32_t n_ips, uint32_t room, uint32_t *n_calls);

#endif
