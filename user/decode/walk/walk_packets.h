/* SPDX-License-Identifier: MIT */
/* Handles single packets of every kind, also those that do not tell branches. */
#ifndef MTBPF_DECODE_WALK_WALK_PACKETS_H
#define MTBPF_DECODE_WALK_WALK_PACKETS_H

#include <stdint.h>

#include "decode/walk/walker.h"

/* Handles the packet at `at`. Returns the address of the next one. */
const uint8_t *walker__on_packet(struct walker *w, const uint8_t *at);
/* Ends the region at the PSB at `to`, or at the end of the stream. */
void walker__end_region(struct walker *w, const uint8_t *to);

#endif
