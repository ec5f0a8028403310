// SPDX-License-Identifier: MIT
/* Whether stacks can be sampled, which is what attach does where there is no Intel PT; and what the
 * CPU adds to them. */
#include <errno.h>
#include <linux/capability.h>

#include "capture/sample/sample_ring.h"
#include "capture/source.h"
#include "check/subjects.h"
#include "kernel/rights.h"
#include "trigger/trigger.h"

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

static const struct {
	const char *there, *instead;
} counted[] = {
	[COUNTING_CYCLES] = {"the hardware counts cycles", "samples come by the kernel's clock"},
	[COUNTING_BRANCHES] = {"the CPU notes the last branches", "none are shown at the hit"},
	[COUNTING_CALLS] = {"the CPU notes calls: -unwind lbr",
			    "callers by frame pointers, or copies"},
};

/* Most virtual machines have none of it: nothing that is needed. */
void check_counting(const struct check *check, struct check_result *result)
{
	int err = counting__try((enum counting)check->which);

	if (!err)
		check_result__set(result, CHECK_OK, "tried: %s", counted[check->which].there);
	else
		check_result__set(result, CHECK_MISSING, "%s: %s", check__strerror(err),
				  counted[check->which].instead);
	if (err == -EACCES || err == -EPERM)
		check_result__remedy(result, "run as root");
}

/* Without the right to load programs libbpf takes every refusal for a yes. */
void check_branch_snapshot(const struct check *check, struct check_result *result)
{
	if (!capability__has(CAP_BPF) && !capability__has(CAP_SYS_ADMIN)) {
		check_result__set(result, CHECK_MISSING, "not tried: no CAP_BPF");
		check_result__remedy(result, "run as root");
	} else if (trigger__has_branch_snapshot())
		check_result__set(result, CHECK_OK, "BPF programs may take the last branches");
	else {
		check_result__set(result, CHECK_MISSING, "no bpf_get_branch_snapshot() here");
		check_result__remedy(result, "Linux 5.16 or later");
	}
}
