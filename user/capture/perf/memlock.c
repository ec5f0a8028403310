// SPDX-License-Identifier: MIT
#include "capture/perf/memlock.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernel/capability.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"

#define AUX_MIN 4096

void memlock__read(struct memlock_limits *limits)
{
	struct rlimit rlimit = {0};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	getrlimit(RLIMIT_MEMLOCK, &rlimit);
	*limits = (struct memlock_limits){
		.mlock_kb = (uint64_t)fs__read_number("/proc/sys/kernel/perf_event_mlock_kb", 0),
		.cpus = cpus > 0 ? (unsigned int)cpus : 1,
		.rlimit = rlimit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : rlimit.rlim_cur,
		.paranoid = fs__read_number("/proc/sys/kernel/perf_event_paranoid", 2),
		.ipc_lock = capability__has(CAP_IPC_LOCK),
	};
}

/* kernel/events/core.c: perf_mmap(): beyond the user's share it counts against the process. */
uint64_t memlock__fits(const struct memlock_limits *limits)
{
	uint64_t share = limits->mlock_kb * 1024 * limits->cpus;

	if (limits->ipc_lock || limits->paranoid < 0 || limits->rlimit > UINT64_MAX - share)
		return UINT64_MAX;
	return share + limits->rlimit;
}

/* The largest AUX area that n buffers fit with; 0: not even the smallest. */
static size_t fitting(uint64_t fits, size_t n, size_t each, size_t aux_size)
{
	size_t rest = each - aux_size;

	while (aux_size >= AUX_MIN && n * (rest + aux_size) > fits)
		aux_size /= 2;
	return aux_size >= AUX_MIN ? aux_size : 0;
}

int memlock__check(const struct memlock_limits *limits, size_t n, size_t each, size_t aux_size)
{
	char need[UNITS_TEXT_SIZE], may[UNITS_TEXT_SIZE], smaller[UNITS_TEXT_SIZE];
	uint64_t fits = memlock__fits(limits);
	size_t size;

	if (n * each <= fits)
		return 0;
	log__error("the trace needs %s of locked memory (%zu thread%s), and %s are allowed: "
		   "kernel.perf_event_mlock_kb %llu x %u CPUs, and RLIMIT_MEMLOCK",
		   units__format_size(need, n * each), n, n == 1 ? "" : "s",
		   units__format_size(may, fits), (unsigned long long)limits->mlock_kb,
		   limits->cpus);
	size = fitting(fits, n, each, aux_size);
	if (size)
		log__hint("-snapshot-size %zuK fits (%s); CAP_IPC_LOCK lifts the limit (or ulimit "
			  "-l)",
			  size / 1024, units__format_size(smaller, size));
	else
		log__hint("CAP_IPC_LOCK lifts the limit, ulimit -l moves it");
	return -EPERM;
}
