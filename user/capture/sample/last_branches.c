// SPDX-License-Identifier: MIT
#include "capture/sample/last_branches.h"

#include <linux/perf_event.h>
#include <unistd.h>

/* So far apart that it never comes to a sample: years of cycles. */
#define NEVER (1ull << 46)

int last_branches__open(const struct event_place *place)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = NEVER,
		.sample_type = PERF_SAMPLE_BRANCH_STACK,
		/* The probe's own way through the kernel would fill it. */
		.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = 1,
	};

	return event_place__open(place, &attr, -1);
}

bool last_branches__are_noted(void)
{
	struct event_place place = event_place__of_thread(getpid());
	int fd = last_branches__open(&place);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
