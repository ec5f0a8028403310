/* SPDX-License-Identifier: MIT */
/*
 * A breakpoint of the CPU on code that is in no file, where a uprobe cannot be set. A CPU has four
 * of them.
 */
#ifndef MTBPF_CAPTURE_PROBE_BREAKPOINT_EVENT_H
#define MTBPF_CAPTURE_PROBE_BREAKPOINT_EVENT_H

#include <stdint.h>

#define BREAKPOINTS_MAX 4

/*
 * An event that overflows each time that this CPU comes to the address in user code, whichever
 * process runs there. A descriptor, or -errno: -ENOSPC if the CPU's breakpoints are in use.
 */
int breakpoint_event__open(int cpu, uint64_t address);

#endif
