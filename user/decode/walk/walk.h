/* SPDX-License-Identifier: MIT */
/*
 * Decodes one region of a stream, from one PSB to another. The result does not depend on anything
 * before the first PSB, so that regions can be decoded in any order and joined (decode.c).
 */
#ifndef MTBPF_DECODE_WALK_WALK_H
#define MTBPF_DECODE_WALK_WALK_H

#include <stdint.h>

#include "decode/request.h"
#include "decode/walk/walker.h"

/*
 * Uses the stream's bytes and the buffer without owning them. Takes the space it needs from the
 * request's images, and puts it back. 0 or -ENOMEM; walker__fini() only after 0.
 */
int walker__init(struct walker *w, const struct decode_request *request, struct branch_buffer *out);
void walker__fini(struct walker *w);

/*
 * Decodes from the PSB at `from` to the PSB at `to`, or to the end of the bytes. 0, or the error
 * that stopped it.
 */
int walker__run(struct walker *w, const uint8_t *from, const uint8_t *to);

#endif
