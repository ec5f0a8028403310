// SPDX-License-Identifier: MIT
#include "capture/perf/sideband_ring.h"

#include <time.h>

/* The ids at a record's end are what sideband.c reads. */
static struct perf_event_attr attr_of(const struct sideband_ring_config *config)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_IDENTIFIER,
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.context_switch = config->switches,
		.use_clockid = config->monotonic,
		.clockid = config->monotonic ? CLOCK_MONOTONIC : 0,
		.watermark = 1,
		.wakeup_watermark = config->at_once ? 1 : (__u32)config->size / 4,
	};
}

int sideband_ring__open(struct sideband_ring *r, const struct event_place *place,
			const struct sideband_ring_config *config)
{
	struct perf_event_attr attr = attr_of(config);
	int err;

	*r = (struct sideband_ring){.event = event_place__open(place, &attr, -1)};
	if (r->event < 0)
		return r->event;
	err = perf_ring__map(&r->ring, r->event, config->size, 0);
	if (err)
		sideband_ring__close(r);
	return err;
}

void sideband_ring__close(struct sideband_ring *r)
{
	perf_ring__unmap(&r->ring);
	if (r->event >= 0)
		close(r->event);
	r->event = -1;
}
