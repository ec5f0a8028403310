// SPDX-License-Identifier: MIT
#include "capture/perf/budget.h"

#include <errno.h>
#include <stdio.h>

#include "util/log.h"
#include "util/units.h"

#define AUX_MIN 4096

bool budget__allows(uint64_t max, size_t n, size_t aux_size)
{
	return n <= max / aux_size;
}

static void suggest(uint64_t max, size_t n, size_t aux_size, bool by_cpu)
{
	const char *other = by_cpu ? "a larger -max-memory allows more"
				   : "-cgroup takes a ring a CPU, however many threads there are; "
				     "a larger -max-memory allows more";

	while (aux_size > AUX_MIN && !budget__allows(max, n, aux_size))
		aux_size /= 2;
	if (budget__allows(max, n, aux_size))
		log__hint("-snapshot-size %zuK fits; %s", aux_size / 1024, other);
	else
		log__hint("%s", other);
}

int budget__check(uint64_t max, size_t n, size_t aux_size, bool by_cpu)
{
	char each[UNITS_TEXT_SIZE], all[UNITS_TEXT_SIZE], most[UNITS_TEXT_SIZE];

	if (budget__allows(max, n, aux_size))
		return 0;
	log__error("%zu %s%s with %s of trace each need %s, and -max-memory allows %s", n,
		   by_cpu ? "CPU" : "thread", n == 1 ? "" : "s", units__format_size(each, aux_size),
		   units__format_size(all, (uint64_t)n * aux_size), units__format_size(most, max));
	suggest(max, n, aux_size, by_cpu);
	return -ENOMEM;
}
