// SPDX-License-Identifier: MIT
#include "capture/perf/perf_clock.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <x86intrin.h>

#include "capture/perf/event_place.h"
#include "capture/perf/perf_ring.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define RING_SIZE 4096

/*
 * Number of points that are taken; the one read fastest is used. If the thread is preempted between
 * the readings of a point, the point is wrong by that time.
 */
#define POINTS 8

/*
 * Setting one's own name writes a COMM record, whose last word is its time. *took_ns: from the
 * first reading to the last.
 */
static int read_point(struct perf_ring *ring, struct clock_point *point, uint64_t *took_ns)
{
	uint64_t record[32], before, after, mono_before, mono_after;
	char name[16];
	int n, last = 0;

	prctl(PR_GET_NAME, name);
	mono_before = clock__now_ns();
	before = __rdtsc();
	prctl(PR_SET_NAME, name);
	after = __rdtsc();
	mono_after = clock__now_ns();
	while ((n = perf_ring__next(ring, record, sizeof(record))) > 0) {
		struct perf_event_header *header = (void *)record;

		if (header->type == PERF_RECORD_COMM)
			last = n;
		if (last)
			point->perf_ns = record[last / 8 - 1];
	}
	point->tsc = before + (after - before) / 2;
	*took_ns = mono_after - mono_before;
	point->monotonic_ns = mono_before + *took_ns / 2;
	return last ? 0 : -ENODATA;
}

int perf_clock__now(struct clock_point *best)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.comm = 1,
	};
	struct event_place place = event_place__of_thread(0);
	_cleanup_close_ int fd = event_place__open(&place, &attr, -1);
	uint64_t least_ns = UINT64_MAX, took_ns;
	struct clock_point point;
	struct perf_ring ring;
	int err = fd < 0 ? fd : perf_ring__map(&ring, fd, RING_SIZE, 0, PERF_RING_NORMAL);

	if (err)
		return err;
	for (int i = 0; i < POINTS && !err; i++) {
		err = read_point(&ring, &point, &took_ns);
		if (!err && took_ns < least_ns) {
			least_ns = took_ns;
			*best = point;
		}
	}
	perf_ring__unmap(&ring);
	return err;
}

/* Thirty-two fraction bits hold a rate to 10^-9 for TSCs from 0.3 to 10 GHz. */
#define FIT_SHIFT 32

void perf_clock__describe(struct rec_pt_config *config, const struct perf_event_mmap_page *page,
			  const struct clock_point *first, const struct clock_point *last)
{
	uint64_t ticks = last->tsc - first->tsc, mult = 0;
	unsigned __int128 scaled = (unsigned __int128)(last->perf_ns - first->perf_ns) << FIT_SHIFT;
	unsigned int shift = FIT_SHIFT;
	uint32_t sequence;

	if (page->cap_user_time_zero) {
		/* The page's seqlock (include/uapi/linux/perf_event.h). */
		do {
			sequence = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
			config->time_shift = page->time_shift;
			config->time_mult = page->time_mult;
			config->time_zero = page->time_zero;
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
		} while (page->lock != sequence || sequence & 1);
		return;
	}
	if (ticks)
		mult = (uint64_t)(scaled / ticks);
	while (mult >> 32) {
		mult >>= 1;
		shift--;
	}
	config->time_shift = (uint16_t)shift;
	config->time_mult = (uint32_t)mult;
	config->time_zero = 0;
	config->time_zero = last->perf_ns - rec_pt__tsc_to_ns(config, last->tsc);
}

int perf_clock__open_timer(uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
	};
	int cpu = sched_getcpu();
	const struct event_place place = {.pid = -1, .cpu = cpu < 0 ? 0 : cpu};

	return event_place__open(&place, &attr, -1);
}
