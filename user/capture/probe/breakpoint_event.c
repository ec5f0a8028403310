// SPDX-License-Identifier: MIT
#include "capture/probe/breakpoint_event.h"

#include <linux/hw_breakpoint.h>

#include "capture/perf/event_place.h"

struct perf_event_attr breakpoint_event__attr(uint64_t address)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT,
		.sample_period = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = address,
		.bp_len = sizeof(long), /* the one length that the kernel takes for code */
	};
}

int breakpoint_event__open(int cpu, uint64_t address)
{
	struct perf_event_attr attr = breakpoint_event__attr(address);
	const struct event_place place = {.pid = -1, .cpu = cpu};

	return event_place__open(&place, &attr, -1);
}
