/* SPDX-License-Identifier: MIT */
/* The histogram that the BPF program fills: which values a bucket holds, and percentiles. */
#ifndef MTBPF_TRIGGER_HISTOGRAM_H
#define MTBPF_TRIGGER_HISTOGRAM_H

#include <stdint.h>

#include "mtbpf_shared.h"

/* The least value of a bucket, in ns; of MT_FINE_BUCKETS: what is behind the last. */
uint64_t histogram__start(int bucket);
/* floor(log2) of its values; 0 for that of 0 as well. */
int histogram__octave(int bucket);

/*
 * The value below which `percent` (0-100) of the counts lie, interpolated inside its bucket; 0
 * where they are all 0.
 */
double histogram__percentile(const double counts[static MT_FINE_BUCKETS], double percent);

#endif
