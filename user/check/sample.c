// SPDX-License-Identifier: MIT
/* Whether stacks can be sampled: what attach does where there is no Intel PT. */
#include <errno.h>

#include "capture/sample/sample_rate.h"
#include "capture/source.h"
#include "check/subjects.h"

void check_sample(const struct check *check, struct check_result *result)
{
	uint64_t period_ns = sample_rate__period(SAMPLE_RATE_HIGHEST);
	int err = source_sample.probe();

	if (!err) {
		check_result__add_number(result, "max_rate", (int64_t)(1000000000 / period_ns));
		check_result__set(result, CHECK_OK, "tried: stacks by the clock, up to %u a second",
				  (unsigned int)(1000000000 / period_ns));
		return;
	}
	check_result__set(result, CHECK_MISSING, "stacks cannot be sampled: %s",
			  check__strerror(err));
	if (err == -EACCES || err == -EPERM)
		check_result__remedy(result, "run as root (CAP_PERFMON)");
}
