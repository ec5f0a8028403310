/* SPDX-License-Identifier: MIT */
/* TSC packets to whole TSC values; rec_pt__tsc_to_ns() goes on from there. */
#ifndef MTBPF_DECODE_TSC_H
#define MTBPF_DECODE_TSC_H

#include <stdint.h>

/* A TSC packet has 56 bits: the rest is the reference's, give or take a wrap. */
uint64_t tsc__extend(uint64_t tsc, uint64_t reference);

#endif
