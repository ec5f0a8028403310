/* SPDX-License-Identifier: MIT */
/* TSC packets to the recording's clock. */
#ifndef MTBPF_DECODE_TSC_H
#define MTBPF_DECODE_TSC_H

#include <stdint.h>

#include "capture/recording.h"

/* A TSC packet has 56 bits: the rest is the reference's, give or take a wrap. */
uint64_t tsc__extend(uint64_t tsc, uint64_t reference);
/* tools/perf/util/tsc.c: tsc_to_perf_time(). */
uint64_t tsc__to_ns(const struct rec_pt_config *pt, uint64_t tsc);

#endif
