// SPDX-License-Identifier: MIT
#include "capture/sample/sample_ring.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "capture/perf/event_place.h"
#include "capture/recording/perf_data.h"

#define SIDEBAND_DATA_SIZE (64u << 10)

/* What sample_read.c takes apart, and sideband.c: the ids at a record's end. */
#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN)

/*
 * The kernel's own code is not excluded: a thread that runs there is on its CPU, and a switch
 * happens nowhere else. Of its stack only the user part is taken.
 */
static struct perf_event_attr sampling_attr(uint64_t config, uint64_t period, uint32_t stack)
{
	const uint64_t user = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_period = period,
		.sample_type = SAMPLE_TYPE | (stack ? user : 0),
		.sample_regs_user = stack ? PERF_HIT_REGS : 0,
		.sample_stack_user = stack,
		.sample_id_all = 1,
		.disabled = 1,
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
		.write_backward = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

static int set_gate(int event, int gate)
{
	if (gate < 0)
		return 0;
	return ioctl(event, PERF_EVENT_IOC_SET_BPF, gate) ? -errno : 0;
}

static int open_sampling(struct sample_ring *r, int *event, struct perf_event_attr *attr,
			 const struct sample_ring_config *config, uint64_t *id)
{
	attr->enable_on_exec = config->from_exec;
	*event = event_place__open(&r->place, attr, -1);
	if (*event < 0)
		return *event;
	return ioctl(*event, PERF_EVENT_IOC_ID, id) ? -errno : set_gate(*event, config->gate);
}

static int open_clock(struct sample_ring *r, const struct sample_ring_config *config)
{
	struct perf_event_attr attr =
		sampling_attr(PERF_COUNT_SW_CPU_CLOCK, config->period_ns, config->stack);
	int err;

	attr.context_switch = 1;
	err = open_sampling(r, &r->clock, &attr, config, &r->clock_id);
	return err ? err : back_ring__map(&r->ring, r->clock, config->size);
}

static int open_switches(struct sample_ring *r, const struct sample_ring_config *config)
{
	struct perf_event_attr attr =
		sampling_attr(PERF_COUNT_SW_CONTEXT_SWITCHES, 1, config->stack);
	int err = open_sampling(r, &r->switches, &attr, config, &r->switches_id);

	if (err)
		return err;
	return ioctl(r->switches, PERF_EVENT_IOC_SET_OUTPUT, r->clock) ? -errno : 0;
}

int sample_ring__open(struct sample_ring *r, const struct event_place *place,
		      const struct sample_ring_config *config)
{
	const struct sideband_ring_config sideband = {
		.size = SIDEBAND_DATA_SIZE, .at_once = place->cpu < 0, .monotonic = true};
	int err;

	*r = (struct sample_ring){.place = *place, .clock = -1, .switches = -1};
	r->sideband.event = -1;
	err = sideband_ring__open(&r->sideband, place, &sideband);
	if (!err)
		err = open_clock(r, config);
	if (!err)
		err = open_switches(r, config);
	if (err)
		sample_ring__close(r);
	return err;
}

void sample_ring__close(struct sample_ring *r)
{
	back_ring__unmap(&r->ring);
	sideband_ring__close(&r->sideband);
	if (r->switches >= 0)
		close(r->switches);
	if (r->clock >= 0)
		close(r->clock);
	r->clock = r->switches = -1;
}

size_t sample_ring__locked_size(size_t size)
{
	return 2 * (size_t)sysconf(_SC_PAGESIZE) + SIDEBAND_DATA_SIZE + size;
}

int sample_ring__enable(struct sample_ring *r)
{
	if (ioctl(r->switches, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	return ioctl(r->clock, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

void sample_ring__disable(struct sample_ring *r)
{
	ioctl(r->clock, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(r->switches, PERF_EVENT_IOC_DISABLE, 0);
	/* Nobody writes to it now, not even a switch that was under way. */
	ioctl(r->clock, PERF_EVENT_IOC_PAUSE_OUTPUT, 1);
}
