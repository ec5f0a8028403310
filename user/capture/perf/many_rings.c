// SPDX-License-Identifier: MIT
#include "capture/perf/many_rings.h"

#include <errno.h>
#include <sys/resource.h>

#include "util/fs.h"
#include "util/log.h"

/* What else is open, or mapped. */
#define SPARE 512

/* With CAP_SYS_RESOURCE the hard limit can be raised as well. */
static rlim_t raise_limit(rlim_t want)
{
	struct rlimit limit, raised;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	if (limit.rlim_cur >= want)
		return limit.rlim_cur;
	raised = (struct rlimit){.rlim_cur = want,
				 .rlim_max = limit.rlim_max > want ? limit.rlim_max : want};
	if (!setrlimit(RLIMIT_NOFILE, &raised))
		return want;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

int many_rings__allow(size_t n, size_t fds_each, size_t mappings_each)
{
	rlim_t fds = n * fds_each + SPARE, allowed = raise_limit(fds);
	size_t mappings = n * mappings_each + SPARE;
	long max = fs__read_number("/proc/sys/vm/max_map_count", 0);

	if (allowed < fds) {
		log__error("%zu threads need %llu open files, and %llu are allowed", n,
			   (unsigned long long)fds, (unsigned long long)allowed);
		log__hint("'ulimit -n %llu' allows more; -cgroup takes a ring a CPU, however many "
			  "threads there are",
			  (unsigned long long)fds);
		return -EMFILE;
	}
	if (max > 0 && mappings > (size_t)max) {
		log__error("%zu threads need %zu mappings, and vm.max_map_count is %ld", n,
			   mappings, max);
		log__hint("'sysctl vm.max_map_count=%zu' allows more; -cgroup takes a ring a CPU, "
			  "however many threads there are",
			  mappings);
		return -EMFILE;
	}
	return 0;
}
