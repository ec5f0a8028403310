// SPDX-License-Identifier: MIT
#include "capture/sample/sample_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "capture/perf/event_place.h"
#include "capture/recording/perf_data.h"
#include "capture/recording/recording.h"
#include "kernel/kernel.h"
#include "util/fs.h"
#include "util/log.h"

/*
 * The longest power of two that the kernel takes as a period (kernel/events/core.c:
 * perf_event_open): decades of cycles, so that the event never samples. The kernel counts such a
 * period in several turns of a counter (arch/x86/events/core.c: x86_perf_event_set_period).
 */
#define NEVER (1ull << 62)

/*
 * Records branches of user code only: the probe's path through the kernel would fill the records.
 */
static uint64_t branches_of(enum counting counting)
{
	if (counting == COUNTING_CYCLES)
		return 0;
	return PERF_SAMPLE_BRANCH_USER | (counting == COUNTING_CALLS ? PERF_SAMPLE_BRANCH_CALL_STACK
								     : PERF_SAMPLE_BRANCH_ANY);
}

/* Opens a counter that never samples. */
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

unsigned int sample_rate__limit(unsigned int wanted_hz)
{
	unsigned int hz = sample_rate__allowed(wanted_hz, fs__read_number(MAX_RATE, 0));

	if (hz != wanted_hz)
		log__info("sample: %u samples per second instead of %u: the limit of mtbpf or of "
			  "kernel.perf_event_max_sample_rate",
			  hz, wanted_hz);
	return hz;
}

#define SIDEBAND_DATA_SIZE (64u << 10)

/* struct sample_record, switch_record and throttle_record have these fields. */
#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN)

/*
 * Kernel code is not excluded: a thread in the kernel is on its CPU, too, and every switch happens
 * there. The sample has the user part of the stack, and the kernel's part if it was requested.
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
	int fd, gate = event == SAMPLE_EVENT_SWITCHES && config->switch_gate ? config->switch_gate
									     : config->gate;

	attr.context_switch = event == SAMPLE_EVENT_CLOCK && !config->no_switches;
	if (event == SAMPLE_EVENT_CLOCK && config->calls) {
		/*
		 * Uses the hardware counter of cycles: only its overflow comes with the calls that
		 * the CPU recorded. The kernel keeps the rate by changing the period.
		 */
		attr.type = PERF_TYPE_HARDWARE;
		attr.config = PERF_COUNT_HW_CPU_CYCLES;
		attr.freq = 1;
		attr.sample_freq = 1000000000 / period;
		attr.sample_type = SAMPLE_TYPE | PERF_SAMPLE_BRANCH_STACK;
		attr.branch_sample_type = branches_of(COUNTING_CALLS);
		attr.sample_regs_user = 0;
		attr.sample_stack_user = 0;
	}
	attr.enable_on_exec = config->from_exec;
	fd = r->events[event] = event_place__open(&r->of.place, &attr, -1);
	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &r->ids[event]) ||
	    (gate >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, gate)))
		return -errno;
	return 0;
}

int sample_ring__open(struct sample_ring *r, const struct event_place *place,
		      const struct sample_ring_config *config)
{
	/* A BPF program cannot filter records of mappings and names: the event's cgroup does. */
	const struct event_place sideband_place =
		config->cgroup ? event_place__of_cgroup(config->cgroup->fd, place->cpu) : *place;
	const struct sideband_ring_config sideband = {
		.size = SIDEBAND_DATA_SIZE, .at_once = place->cpu < 0, .monotonic = true};
	int first = -1, err;

	*r = (struct sample_ring){.of = {.place = *place, .wakes = -1, .sideband = {.event = -1}},
				  .branches = -1};
	memset(r->events, -1, sizeof(r->events));
	err = sideband_ring__open(&r->of.sideband, &sideband_place, &sideband);
	for (int i = SAMPLE_EVENT_CLOCK; i < SAMPLE_EVENTS && !err; i++) {
		if (i == SAMPLE_EVENT_SWITCHES && config->no_stacks)
			continue;
		err = open_event(r, (enum sample_event)i, config);
		if (err)
			break;
		if (first < 0) {
			first = r->events[i];
			err = perf_ring__map(&r->ring, first, config->size, 0, PERF_RING_BACKWARD);
		} else if (ioctl(r->events[i], PERF_EVENT_IOC_SET_OUTPUT, first)) {
			err = -errno;
		}
	}
	if (err) {
		sample_ring__close(r);
		return err;
	}
	/* Failure is acceptable: other events may use all counters. */
	if (config->branches)
		r->branches = open_counting(&r->of.place, COUNTING_BRANCHES);
	if (r->branches >= 0)
		ioctl(r->branches, PERF_EVENT_IOC_ENABLE, 0);
	return 0;
}

void sample_ring__close(struct sample_ring *r)
{
	perf_ring__unmap(&r->ring);
	sideband_ring__close(&r->of.sideband);
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
	/* The cycles event is in perf's frequency mode (attr.freq): its value is in Hz. */
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
	/* Stops the kernel's writes, also those from a switch that is in progress. */
	ioctl(r->events[SAMPLE_EVENT_CLOCK], PERF_EVENT_IOC_PAUSE_OUTPUT, 1);
}

/* Reading the records of the ring. */

/* The longest call instruction: with a prefix, REX, SIB and a displacement. */
#define CALL_LEN_MAX 9

uint32_t noted_calls__join(const struct perf_branch_entry *calls, size_t n, uint64_t *ips,
			   uint32_t n_ips, uint32_t room, uint32_t *n_calls)
{
	uint32_t rest = 1, left;
	uint64_t outermost;

	*n_calls = 0;
	/* Counts up to the first branch from the kernel: only user code's calls count. */
	for (size_t i = 0;
	     i < n && i < NOTED_CALLS_MAX && !address__is_kernel(calls[i].from) && calls[i].from;
	     i++)
		++*n_calls;
	if (!*n_calls || !n_ips || room <= *n_calls) {
		*n_calls = 0;
		return n_ips;
	}
	/* Frame pointers add callers only if they pass through the outermost of these calls. */
	outermost = calls[*n_calls - 1].from;
	while (rest < n_ips && (ips[rest] <= outermost || ips[rest] - outermost > CALL_LEN_MAX))
		rest++;
	left = rest < n_ips ? n_ips - rest - 1 : 0;
	if (left > room - 1 - *n_calls)
		left = room - 1 - *n_calls;
	memmove(ips + 1 + *n_calls, ips + rest + (left ? 1 : 0), left * sizeof(*ips));
	for (uint32_t i = 0; i < *n_calls; i++)
		ips[1 + i] = calls[i].from;
	return 1 + *n_calls + left;
}

/*
 * The most addresses read from one sample. The kernel records 127 by default
 * (kernel.perf_event_max_stack).
 */
#define IPS_MAX 1024

/* The layout that SAMPLE_TYPE selects (include/uapi/linux/perf_event.h: PERF_RECORD_SAMPLE). */
struct sample_record {
	struct perf_event_header header;
	uint64_t identifier, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t n_ips;
	uint64_t ips[];
};

/* PERF_RECORD_SWITCH with its sample ids; in PERF_RECORD_SWITCH_CPU_WIDE the other thread comes
 * between header and ids. */
struct switch_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t identifier;
};

/* The other thread's pid and tid. */
#define SWITCH_OTHER_SIZE 8

/*
 * Copies the addresses of user code, or of the kernel, from the call chain, without the marks
 * between them (enum perf_callchain_context). Returns their number.
 */
static uint32_t take_ips(const struct sample_record *r, size_t size, bool of_kernel, uint64_t *ips)
{
	size_t room = (size - offsetof(struct sample_record, ips)) / sizeof(*ips);
	uint32_t n = 0;

	for (size_t i = 0; i < r->n_ips && i < room && n < IPS_MAX; i++)
		if (r->ips[i] < (uint64_t)PERF_CONTEXT_MAX &&
		    address__is_kernel(r->ips[i]) == of_kernel)
			ips[n++] = r->ips[i];
	return n;
}

/* Joins the chain with the calls that the CPU recorded, which follow it after their number. */
static uint32_t join_calls(const struct sample_record *r, size_t size, uint64_t *chain,
			   struct rec_sample *sample)
{
	size_t at = offsetof(struct sample_record, ips) + 8 * r->n_ips;
	struct perf_branch_entry calls[NOTED_CALLS_MAX];
	uint64_t n;

	if (r->n_ips > IPS_MAX || at + sizeof(n) > size)
		return sample->n_ips;
	memcpy(&n, (const uint8_t *)r + at, sizeof(n));
	if (n > NOTED_CALLS_MAX || at + sizeof(n) + n * sizeof(*calls) > size)
		return sample->n_ips;
	memcpy(calls, (const uint8_t *)r + at + sizeof(n), n * sizeof(*calls));
	return noted_calls__join(calls, n, chain, sample->n_ips, IPS_MAX, &sample->n_calls);
}

/* The registers, in the order of PERF_HIT_REGS and struct rec_user; 8 bytes with their ABI come
 * first. */
#define REGS_SIZE 64

/* Reads the registers and the stack copy after the chain; false if the sample lacks a part. */
static bool take_user(const struct sample_record *r, size_t size, struct rec_user *user)
{
	size_t at = offsetof(struct sample_record, ips) + 8 * r->n_ips, room;
	const uint8_t *bytes = (const uint8_t *)r + at;
	uint64_t abi, copied, valid;

	if (r->n_ips > IPS_MAX || at + 8 + REGS_SIZE + 8 > size)
		return false;
	memcpy(&abi, bytes, 8);
	memcpy(&copied, bytes + 8 + REGS_SIZE, 8);
	room = size - at - 8 - REGS_SIZE - 8;
	/* The record is shorter if it lacks registers (of a kernel thread). */
	if (abi != PERF_SAMPLE_REGS_ABI_64 || !copied || copied + 8 > room)
		return false;
	memcpy(user, bytes + 8, REGS_SIZE);
	user->stack = (uint8_t *)bytes + 8 + REGS_SIZE + 8;
	memcpy(&valid, user->stack + copied, 8);
	user->size = valid < copied ? valid : copied;
	return user->size > 0;
}

static bool is_late(const struct sample_record_ids *ids, uint64_t time_ns)
{
	return ids->until_ns && time_ns > ids->until_ns;
}

static int add_sample(struct sample_record_ids *ids, struct recording *rec,
		      const struct sample_record *r, size_t size)
{
	struct rec_sample sample = {
		.time_ns = r->time_ns,
		.pid = (pid_t)r->pid,
		.tid = (pid_t)r->tid,
		.cpu = (int)r->cpu,
		.at_switch = r->identifier == ids->switches,
		.in_kernel =
			(r->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL,
	};
	bool has_calls = ids->calls && r->identifier == ids->calls;
	bool is_minor = ids->minor_faults && r->identifier == ids->minor_faults;
	uint64_t chain[IPS_MAX];
	struct rec_user user;
	uint32_t n_kernel;
	int err;

	if (is_late(ids, r->time_ns)) {
		ids->late++;
		return 0;
	}
	sample.is_major = ids->major_faults && r->identifier == ids->major_faults;
	sample.faults = sample.is_major ? 1 : is_minor ? REC_FAULT_PERIOD : 0;
	sample.n_ips = take_ips(r, size, false, chain);
	if (has_calls)
		sample.n_ips = join_calls(r, size, chain, &sample);
	err = recording__add_sample(rec, &sample, chain);
	/* The kernel's part of the chain is there only with -trace-include-kernel. */
	n_kernel = take_ips(r, size, true, chain);
	if (!err && n_kernel)
		err = recording__add_sample_kernel(rec, chain, n_kernel);
	return err || has_calls || !take_user(r, size, &user)
		       ? err
		       : recording__add_sample_user(rec, &user);
}

static int add_switch(const struct sample_record_ids *ids, struct recording *rec,
		      const struct switch_record *r, uint16_t misc)
{
	struct rec_sched sched = {
		.time_ns = r->time_ns,
		.pid = (pid_t)r->pid,
		.tid = (pid_t)r->tid,
		.cpu = (int)r->cpu,
		.what = !(misc & PERF_RECORD_MISC_SWITCH_OUT)	     ? REC_SCHED_IN
			: misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? REC_SCHED_PREEMPTED
								     : REC_SCHED_BLOCKED,
	};

	return is_late(ids, r->time_ns) ? 0 : VEC_ADD(&rec->scheds, sched);
}

/* PERF_RECORD_THROTTLE, with its sample ids. */
struct throttle_record {
	struct perf_event_header header;
	uint64_t time_ns, id, stream_id;
};

int sample_record__add(struct sample_record_ids *ids, struct recording *rec, const void *record,
		       size_t size)
{
	const struct perf_event_header *header = record;

	if (header->type == PERF_RECORD_SAMPLE && size >= sizeof(struct sample_record))
		return add_sample(ids, rec, record, size);
	/* The kernel takes no samples until the next tick. */
	if (header->type == PERF_RECORD_THROTTLE && size >= sizeof(struct throttle_record))
		rec->drops[DROP_THROTTLED] +=
			!is_late(ids, ((const struct throttle_record *)record)->time_ns);
	if (header->type == PERF_RECORD_SWITCH && size >= sizeof(struct switch_record))
		return add_switch(ids, rec, record, header->misc);
	if (header->type == PERF_RECORD_SWITCH_CPU_WIDE &&
	    size >= SWITCH_OTHER_SIZE + sizeof(struct switch_record)) {
		struct switch_record r;

		memcpy(&r, (const uint8_t *)record + SWITCH_OTHER_SIZE, sizeof(r));
		return add_switch(ids, rec, &r, header->misc);
	}
	return 0;
}
