/* SPDX-License-Identifier: MIT */
/* A stream, cut at PSBs into regions that several threads decode at once. */
#ifndef MTBPF_DECODE_REGIONS_H
#define MTBPF_DECODE_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/decode.h"
#include "decode/join.h"
#include "util/vec.h"

struct regions {
	VEC(const uint8_t *) starts; /* ascending; each ends where the next one starts */
	const uint8_t *end;
};

/* At least `size` bytes each. 0 or -ENOMEM; regions__fini() in any case. */
int regions__find(struct regions *regions, const uint8_t *bytes, size_t n, size_t size);
void regions__fini(struct regions *regions);
const uint8_t *regions__end_of(const struct regions *regions, size_t i);

/* Decodes all of them into the joiner, in order. 0, -ENOMEM, or what the joiner returned. */
int regions__decode(const struct regions *regions, const struct decode_request *request,
		    struct joiner *joiner);
/* With `jobs` threads. */
int regions__decode_parallel(const struct regions *regions, const struct decode_request *request,
			     struct joiner *joiner, unsigned int jobs);

#endif
