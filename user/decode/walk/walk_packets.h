/* SPDX-License-Identifier: MIT */
/* All packets, one by one: those that tell of more than branches as well. */
#ifndef MTBPF_DECODE_WALK_WALK_PACKETS_H
#define MTBPF_DECODE_WALK_WALK_PACKETS_H

#include <stdint.h>

#include "decode/walk/walker.h"

/* The packet at `at`, whatever it is. Where the next one is. */
const uint8_t *walker__on_packet(struct walker *w, const uint8_t *at);
/* The region ends at the PSB at `to`, or at the end of the stream. */
void walker__end_region(struct walker *w, const uint8_t *to);

#endif
