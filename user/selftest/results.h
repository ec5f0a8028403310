/* SPDX-License-Identifier: MIT */
/* Prints the results of a selftest, as lines or as JSON, and counts them. */
#ifndef MTBPF_SELFTEST_RESULTS_H
#define MTBPF_SELFTEST_RESULTS_H

#include <stdbool.h>

#include "selftest/selftest.h"

struct selftest_results;

/* NULL: out of memory. */
struct selftest_results *selftest_results__new(bool json);
void selftest_results__free(struct selftest_results *results);

/* Of selftest__run(), with the results as ctx. Prints a line at once; JSON comes at the end. */
void selftest_results__take(void *results, const struct selftest_result *result);

/* Prints what is left, and fills n[] by enum selftest_verdict. 0 or -errno. */
int selftest_results__finish(const struct selftest_results *results,
			     unsigned int n[static SELFTEST_VERDICTS]);

#endif
