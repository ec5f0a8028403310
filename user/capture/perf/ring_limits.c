// SPDX-License-Identifier: MIT
#include "capture/perf/ring_limits.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernel/rights.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"

#define AUX_MIN 4096
#define BY_CPU	"-cgroup takes one ring per CPU, however many threads there are"

void ring_limits__explain(int err, const char *what)
{
	if (err == -ESRCH) {
		log__error("the process has exited");
		log__hint("start it again, and attach to its new pid");
		return;
	}
	log__error("cannot %s: %s", what, strerror(-err));
	if (err == -EACCES || err == -EPERM)
		log__hint("needs CAP_PERFMON, or kernel.perf_event_paranoid <= 1 (now %ld)",
			  fs__read_number("/proc/sys/kernel/perf_event_paranoid", -1));
	else
		log__hint("'mtbpf check' shows what this machine has");
}

bool budget__allows(uint64_t max, size_t n, size_t aux_size)
{
	return n <= max / aux_size;
}

int budget__check(uint64_t max, size_t n, size_t size, size_t least, bool by_cpu)
{
	char each[UNITS_TEXT_SIZE], all[UNITS_TEXT_SIZE], most[UNITS_TEXT_SIZE];
	const char *other = by_cpu ? "a larger -max-memory allows more"
				   : BY_CPU "; a larger -max-memory allows more";

	if (budget__allows(max, n, size))
		return 0;
	log__error("%zu %s%s with %s of trace each need %s, and -max-memory allows %s", n,
		   by_cpu ? "CPU" : "thread", n == 1 ? "" : "s", units__format_size(each, size),
		   units__format_size(all, (uint64_t)n * size), units__format_size(most, max));
	while (size > least && !budget__allows(max, n, size))
		size /= 2;
	if (budget__allows(max, n, size))
		log__hint("-snapshot-size %zuK fits; %s", size / 1024, other);
	else
		log__hint("%s", other);
	return -ENOMEM;
}

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

/* Descriptors and mappings kept free for everything but rings. */
#define SPARE 512

int many_rings__allow(size_t n, size_t fds_each, size_t mappings_each)
{
	rlim_t fds = n * fds_each + SPARE;
	struct rlimit allowed = {0};
	size_t mappings = n * mappings_each + SPARE;
	long max = fs__read_number("/proc/sys/vm/max_map_count", 0);

	fs__allow_open_files(n * fds_each);
	getrlimit(RLIMIT_NOFILE, &allowed);
	if (allowed.rlim_cur < fds) {
		log__error("%zu threads need %llu open files, and %llu are allowed", n,
			   (unsigned long long)fds, (unsigned long long)allowed.rlim_cur);
		log__hint("'ulimit -n %llu' allows more; " BY_CPU, (unsigned long long)fds);
		return -EMFILE;
	}
	if (max > 0 && mappings > (size_t)max) {
		log__error("%zu threads need %zu mappings, and vm.max_map_count is %ld", n,
			   mappings, max);
		log__hint("'sysctl vm.max_map_count=%zu' allows more; " BY_CPU, mappings);
		return -EMFILE;
	}
	return 0;
}

int ring_limits__check(size_t n, size_t each, size_t aux_size, size_t fds_each,
		       size_t mappings_each)
{
	struct memlock_limits limits;
	int err;

	memlock__read(&limits);
	err = memlock__check(&limits, n, each, aux_size);
	return err ? err : many_rings__allow(n, fds_each, mappings_each);
}
