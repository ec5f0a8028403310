/* SPDX-License-Identifier: MIT */
/* What is slow, as people say it: "10ms", or "p99.9", slower than so many percent of all. */
#ifndef MTBPF_UTIL_THRESHOLD_H
#define MTBPF_UTIL_THRESHOLD_H

#include <stddef.h>
#include <stdint.h>

struct threshold {
	uint64_t ns;
	double percent; /* 0: ns holds; else that is to be learned, and ns is 0 */
};

/*
 * Percentiles are above 0 and at most 99.9999: to know more takes 10^8 hits. -EINVAL: neither;
 * -ERANGE: too large.
 */
int threshold__parse(const char *text, struct threshold *threshold);

/* Neither one nor the other is asked for. */
static inline int threshold__is_set(const struct threshold *t)
{
	return t->ns || t->percent > 0;
}

/* Of how many values a percentile is known: ten lie above it. */
uint64_t threshold__needed(double percent);

#define THRESHOLD_TEXT_SIZE 24
/* "p99.9" */
const char *threshold__format_percent(char buf[static THRESHOLD_TEXT_SIZE], double percent);

#endif
