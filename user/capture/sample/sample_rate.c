// SPDX-License-Identifier: MIT
#include "capture/sample/sample_rate.h"

#include "util/fs.h"
#include "util/log.h"

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
