/* SPDX-License-Identifier: MIT */
/* A stream, cut at PSBs into regions that several threads decode at once. */
#ifndef MTBPF_DECODE_REGIONS_H
#define MTBPF_DECODE_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/request.h"

/*
 * Takes what a walker leaves in its outbox, in order; may change it. Non-zero stops the decoder,
 * which returns it.
 */
typedef int (*outbox_fn)(void *ctx, struct branch *branches, size_t n);

/* Finds the regions and decodes them, with as many threads as the request says. */
int regions__run(const struct decode_request *request, outbox_fn take, void *ctx);

#endif
