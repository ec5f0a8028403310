// SPDX-License-Identifier: MIT
#include "capture/sample/sample_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "capture/perf/event_place.h"
#include "capture/recording/perf_data.h"
#include "capture/recording/recording.h"
#include "util/fs.h"
#include "util/log.h"

/* A period of years of cycles: the event never samples. */
#define NEVER (1ull << 46)

/* User code's only: the probe's own way through the kernel would fill them. */
static uint64_t branches_of(enum counting counting)
{
	if (counting == COUNTING_CYCLES)
		return 0;
	return PERF_SAMPLE_BRANCH_USER | (counting == COUNTING_CALLS ? PERF_SAMPLE_BRANCH_CALL_STACK
								     : PERF_SAMPLE_BRANCH_ANY);
}

/* It never samples. */
static int open_counting(const struct event_place *place, enum counting counting)
{
	uint64_t branches = branches_of(counting);
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

#define MAX_RATE "/proc/sys/kernel/perf_event_max_sample_rate"

unsigned int sample_rate__allowed(unsigned int wanted_hz, long max_hz)
{
	unsigned int hz = wanted_hz < SAMPLE_RATE_HIGHEST ? wanted_hz : SAMPLE_RATE_HIGHEST;

	return max_hz > 0 && (unsigned long)max_hz < hz ? (unsigned int)max_hz : hz;
}

uint64_t sample_rate__period(unsigned int wanted_hz)
{
	unsigned int hz = sample_rate__allowed(wanted_hz, fs__read_number(MAX_RATE, 0));

	if (hz != wanted_hz)
		log__info("sample: %u samples a second instead of %u: the kernel allows no more "
			  "(kernel.perf_event_max_sample_rate)",
			  hz, wanted_hz);
	return 1000000000ull / hz;
}

#define SIDEBAND_DATA_SIZE (64u << 10)

/* sample_record.c reads these fields, and sideband.c the ids at a record's end. */
#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN)

/*
 * The kernel's own code is not excluded: a thread that runs there is on its CPU, and a switch
 * happens nowhere else. Of its stack the user part is taken, and the kernel's where it was asked
 * for.
 */
static struct perf_event_attr sampling_attr(uint64_t type_config, uint64_t period,
					    const struct sample_ring_config *config)
{
	const uint32_t stack = config->stack;
	const uint64_t user = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = type_config,
		.sample_period = period,
		.sample_type = SAMPLE_TYPE | (stack ? user : 0),
		.sample_regs_user = stack ? PERF_HIT_REGS : 0,
		.sample_stack_user = stack,
		.sample_id_all = 1,
		.disabled = 1,
		.exclude_hv = 1,
		.exclude_callchain_kernel = !config->kernel,
		.write_backward = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

/*
 * The hardware's counter of cycles: only with its overflow comes what the CPU has noted. The kernel
 * keeps to the rate by changing the period.
 */
static void count_calls(struct perf_event_attr *attr, uint64_t period_ns)
{
	attr->type = PERF_TYPE_HARDWARE;
	attr->config = PERF_COUNT_HW_CPU_CYCLES;
	attr->freq = 1;
	attr->sample_freq = 1000000000 / period_ns;
	attr->sample_type = SAMPLE_TYPE | PERF_SAMPLE_BRANCH_STACK;
	attr->branch_sample_type = branches_of(COUNTING_CALLS);
	attr->sample_regs_user = 0;
	attr->sample_stack_user = 0;
}

static int set_gate(int event, int gate)
{
	if (gate < 0)
		return 0;
	return ioctl(event, PERF_EVENT_IOC_SET_BPF, gate) ? -errno : 0;
}

static int open_event(struct sample_ring *r, enum sample_event event,
		      const struct sample_ring_config *config)
{
	static const uint64_t configs[SAMPLE_EVENTS] = {
		[SAMPLE_EVENT_CLOCK] = PERF_COUNT_SW_CPU_CLOCK,
		[SAMPLE_EVENT_SWITCHES] = PERF_COUNT_SW_CONTEXT_SWITCHES,
		[SAMPLE_EVENT_MINOR_FAULTS] = PERF_COUNT_SW_PAGE_FAULTS_MIN,
		[SAMPLE_EVENT_MAJOR_FAULTS] = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
	};
	uint64_t period = event == SAMPLE_EVENT_CLOCK	       ? config->period_ns
			  : event == SAMPLE_EVENT_MINOR_FAULTS ? REC_FAULT_PERIOD
							       : 1;
	struct perf_event_attr attr = sampling_attr(configs[event], period, config);
	int fd;

	attr.context_switch = event == SAMPLE_EVENT_CLOCK && !config->no_switches;
	if (event == SAMPLE_EVENT_CLOCK && config->calls)
		count_calls(&attr, period);
	attr.enable_on_exec = config->from_exec;
	fd = r->events[event] = event_place__open(&r->place, &attr, -1);
	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &r->ids[event]))
		return -errno;
	return set_gate(fd, config->gate);
}

static int open_events(struct sample_ring *r, const struct sample_ring_config *config)
{
	int first, err = open_event(r, SAMPLE_EVENT_CLOCK, config);

	first = r->events[SAMPLE_EVENT_CLOCK];
	if (!err)
		err = perf_ring__map_backward(&r->ring, first, config->size);
	for (int i = SAMPLE_EVENT_CLOCK + 1; i < SAMPLE_EVENTS && !err; i++) {
		if (i == SAMPLE_EVENT_SWITCHES && config->no_stacks)
			continue;
		err = open_event(r, (enum sample_event)i, config);
		if (!err && ioctl(r->events[i], PERF_EVENT_IOC_SET_OUTPUT, first))
			err = -errno;
	}
	return err;
}

/* Without them the rest is as good as it was: other events may have all counters. */
static void open_branches(struct sample_ring *r, const struct sample_ring_config *config)
{
	if (!config->branches)
		return;
	r->branches = open_counting(&r->place, COUNTING_BRANCHES);
	if (r->branches >= 0)
		ioctl(r->branches, PERF_EVENT_IOC_ENABLE, 0);
}

int sample_ring__open(struct sample_ring *r, const struct event_place *place,
		      const struct sample_ring_config *config)
{
	/* A BPF program cannot filter records of mappings and names: the event's cgroup does. */
	const struct event_place sideband_place =
		config->cgroup ? event_place__of_cgroup(config->cgroup->fd, place->cpu) : *place;
	const struct sideband_ring_config sideband = {
		.size = SIDEBAND_DATA_SIZE, .at_once = place->cpu < 0, .monotonic = true};
	int err;

	*r = (struct sample_ring){.place = *place, .branches = -1, .sideband = {.event = -1}};
	memset(r->events, -1, sizeof(r->events));
	err = sideband_ring__open(&r->sideband, &sideband_place, &sideband);
	if (!err)
		err = open_events(r, config);
	if (err)
		sample_ring__close(r);
	else
		open_branches(r, config);
	return err;
}

void sample_ring__close(struct sample_ring *r)
{
	perf_ring__unmap(&r->ring);
	sideband_ring__close(&r->sideband);
	for (int i = 0; i < SAMPLE_EVENTS; i++)
		if (r->events[i] >= 0)
			close(r->events[i]);
	memset(r->events, -1, sizeof(r->events));
	if (r->branches >= 0)
		close(r->branches);
	r->branches = -1;
}

size_t sample_ring__locked_size(size_t size)
{
	return 2 * (size_t)sysconf(_SC_PAGESIZE) + SIDEBAND_DATA_SIZE + size;
}

void sample_ring__set_period(struct sample_ring *r, const struct sample_ring_config *config)
{
	/* Of what the kernel keeps to a rate it is that. */
	uint64_t value = config->calls ? 1000000000 / config->period_ns : config->period_ns;

	ioctl(r->events[SAMPLE_EVENT_CLOCK], PERF_EVENT_IOC_PERIOD, &value);
}

int sample_ring__enable(struct sample_ring *r)
{
	perf_ring__clear(&r->ring);
	r->written_before = 0;
	r->has_no_clock = false;
	if (ioctl(r->events[SAMPLE_EVENT_CLOCK], PERF_EVENT_IOC_PAUSE_OUTPUT, 0))
		return -errno;
	for (int i = SAMPLE_EVENTS; i-- > 0;)
		if (r->events[i] >= 0 && ioctl(r->events[i], PERF_EVENT_IOC_ENABLE, 0))
			return -errno;
	return 0;
}

void sample_ring__set_clock(struct sample_ring *r, bool on)
{
	if (on != r->has_no_clock)
		return;
	r->has_no_clock = !on;
	ioctl(r->events[SAMPLE_EVENT_CLOCK], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE,
	      0);
}

void sample_ring__disable(struct sample_ring *r)
{
	for (int i = 0; i < SAMPLE_EVENTS; i++)
		ioctl(r->events[i], PERF_EVENT_IOC_DISABLE, 0);
	/* Nobody writes to it now, not even a switch that was under way. */
	ioctl(r->events[SAMPLE_EVENT_CLOCK], PERF_EVENT_IOC_PAUSE_OUTPUT, 1);
}
