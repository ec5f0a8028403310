// SPDX-License-Identifier: MIT
/* Whether -trace-include-kernel works. */
#include <errno.h>

#include "capture/code/kernel_copy.h"
#include "capture/pt/pt_ring.h"
#include "check/subjects.h"

static void explain_open(struct check_result *result, int err)
{
	if (err == -EOPNOTSUPP) {
		check_result__set(result, CHECK_MISSING, "this PMU records user code only");
		return;
	}
	check_result__set(result, CHECK_MISSING, "not recorded: %s", check__strerror(err));
	if (err == -EACCES || err == -EPERM)
		check_result__remedy(result, "run as root (CAP_PERFMON)");
}

void check_kernel_code(const struct check *check, struct check_result *result)
{
	const struct kernel_refusal *refusal = kernel_access__try(true);
	struct pt_pmu pmu;
	int err;

	if (refusal) {
		check_result__set(result, CHECK_MISSING, "%s", refusal->what);
		check_result__remedy(result, "%s", refusal->remedy);
		return;
	}
	if (pt_pmu__read(&pmu)) {
		check_result__set(result, CHECK_MISSING, "not tried: no intel_pt");
		return;
	}
	err = pt_probe__open(&pmu, true);
	if (err)
		explain_open(result, err);
	else
		check_result__set(result, CHECK_OK,
				  "can be recorded, and read: "
				  "-trace-include-kernel");
}
