/* SPDX-License-Identifier: MIT */
/*
 * A hardware breakpoint on code that no file contains, where a uprobe cannot be set. A CPU has
 * four.
 */
#ifndef MTBPF_CAPTURE_PROBE_BREAKPOINT_EVENT_H
#define MTBPF_CAPTURE_PROBE_BREAKPOINT_EVENT_H

#include <linux/perf_event.h>
#include <stdint.h>

#define BREAKPOINTS_MAX 4

/* Of an event that overflows each time the address is executed in user code. */
struct perf_event_attr breakpoint_event__attr(uint64_t address);

/*
 * Opens an event that overflows each time this CPU executes the address in user code, in any
 * process. Returns a descriptor, or -errno: -ENOSPC if the CPU's breakpoints are in use.
 */
int breakpoint_event__open(int cpu, uint64_t address);

#endif
