/* SPDX-License-Identifier: MIT */
/* Cuts a stream at PSBs into regions, which several threads decode in parallel. */
#ifndef MTBPF_DECODE_REGIONS_H
#define MTBPF_DECODE_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/request.h"

/*
 * Receives the entries of a walker's buffer in order, and may modify them. A non-zero result stops
 * the decoder, which returns it.
 */
typedef int (*raw_branches_fn)(void *ctx, struct branch *branches, size_t n);

/* Finds the regions and decodes them, with as many threads as the request says. */
int regions__run(const struct decode_request *request, raw_branches_fn take, void *ctx);

#endif
