/* SPDX-License-Identifier: MIT */
/* The BPF program's histogram: the range of each bucket, and percentiles. */
#ifndef MTBPF_TRIGGER_HISTOGRAM_H
#define MTBPF_TRIGGER_HISTOGRAM_H

#include <stdint.h>

#include "mtbpf_shared.h"

/* The least value of a bucket, in ns; for MT_FINE_BUCKETS the end of the last bucket. */
uint64_t histogram__start(int bucket);
/* floor(log2) of the bucket's values; 0 for the value 0. */
int histogram__octave(int bucket);

/* The percentile (0-100) of the counts, interpolated inside its bucket; 0 if all counts are 0. */
double histogram__percentile(const double counts[static MT_FINE_BUCKETS], double percent);

#endif
