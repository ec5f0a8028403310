// SPDX-License-Identifier: MIT
#include "capture/sample/last_branches.h"

#include <linux/perf_event.h>
#include <unistd.h>

/* So far apart that it never comes to a sample: years of cycles. */
#define NEVER (1ull << 46)

/* User code's only: the probe's own way through the kernel would fill them. */
uint64_t counting__branches(enum counting counting)
{
	if (counting == COUNTING_CYCLES)
		return 0;
	return PERF_SAMPLE_BRANCH_USER | (counting == COUNTING_CALLS ? PERF_SAMPLE_BRANCH_CALL_STACK
								     : PERF_SAMPLE_BRANCH_ANY);
}

static int open_counting(const struct event_place *place, enum counting counting)
{
	uint64_t branches = counting__branches(counting);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = NEVER,
		.sample_type = branches ? PERF_SAMPLE_BRANCH_STACK : 0,
		.branch_sample_type = branches,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = 1,
	};

	return event_place__open(place, &attr, -1);
}

int counting__try(enum counting counting)
{
	struct event_place place = event_place__of_thread(getpid());
	int fd = open_counting(&place, counting);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

int last_branches__open(const struct event_place *place)
{
	return open_counting(place, COUNTING_BRANCHES);
}
