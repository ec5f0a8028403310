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
 * Runs all checks and passes each result to `on_result`; the result is valid until that returns. 0,
 * or -errno after a line and a hint if the tests could not be run.
 */
int selftest__run(const struct selftest_options *options,
		  void (*on_result)(void *ctx, const struct selftest_result *result), void *ctx);

/* Prints results, as lines or as JSON, and counts them. */
struct selftest_results;

/* NULL: out of memory. */
struct selftest_results *selftest_results__new(bool json);
void selftest_results__free(struct selftest_results *results);

/* For selftest__run(), with the results as ctx. Prints lines at once, JSON at the end. */
void selftest_results__take(void *results, const struct selftest_result *result);

/* Prints what is not printed yet (all of the JSON), and fills n[] with counts by enum
 * selftest_verdict. 0 or -errno. */
int selftest_results__finish(const struct selftest_results *results,
			     unsigned int n[static SELFTEST_VERDICTS]);

#endif
