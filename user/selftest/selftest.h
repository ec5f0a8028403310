/* SPDX-License-Identifier: MIT */
/*
 * Tests on this machine that mtbpf's traces are true: records programs of its own, whose calls are
 * known, with each source that works here, and judges the decoded trace.
 */
#ifndef MTBPF_SELFTEST_SELFTEST_H
#define MTBPF_SELFTEST_SELFTEST_H

#include <stdbool.h>

#include "selftest/checks.h"

/*
 * Runs all checks and prints the results: lines at once, JSON at the end. n[] counts them by enum
 * selftest_verdict. 0; -errno after a line and a hint if the tests could not be run; -ENOMEM; or
 * -errno of stdout.
 */
int selftest__run(const struct selftest_options *options, bool json,
		  unsigned int n[static SELFTEST_VERDICTS]);

#endif
