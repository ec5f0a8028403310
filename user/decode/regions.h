/* SPDX-License-Identifier: MIT */
/* A stream, cut at PSBs into regions that several threads decode at once. */
#ifndef MTBPF_DECODE_REGIONS_H
#define MTBPF_DECODE_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/decode.h"
#include "util/vec.h"

struct regions {
	VEC(const uint8_t *) starts; /* ascending; each ends where the next one starts */
	const uint8_t *end;
};

/* At least `size` bytes each. 0 or -ENOMEM; regions__fini() in any case. */
int regions__find(struct regions *regions, const uint8_t *bytes, size_t n, size_t size);
void regions__fini(struct regions *regions);
const uint8_t *regions__end_of(const struct regions *regions, size_t i);
/* Told to the request's meter: that one is done. */
void regions__count(const struct regions *regions, const struct decode_request *request, size_t i);

/*
 * Takes what a walker leaves in its outbox, in order; may change it. Non-zero stops the decoder,
 * which returns it.
 */
typedef int (*outbox_fn)(void *ctx, struct branch *branches, size_t n);

/* Decodes all of them, in order, in the caller's thread. 0, -ENOMEM, or what `take` returned. */
int regions__decode(const struct regions *regions, const struct decode_request *request,
		    outbox_fn take, void *ctx);
/* With `jobs` threads. */
int regions__decode_parallel(const struct regions *regions, const struct decode_request *request,
			     outbox_fn take, void *ctx, unsigned int jobs);

/* Finds the regions and decodes them, with as many threads as the request says. */
int regions__run(const struct decode_request *request, outbox_fn take, void *ctx);

#endif
