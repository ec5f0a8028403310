/* SPDX-License-Identifier: MIT */
/*
 * One region of a stream to branches: from one PSB to another. What comes out depends on nothing
 * before the first PSB, so that regions may be decoded in any order, and joined (join.h).
 */
#ifndef MTBPF_DECODE_WALK_WALK_H
#define MTBPF_DECODE_WALK_WALK_H

#include <stdint.h>

#include "decode/request.h"
#include "decode/walk/walker.h"

/*
 * The stream's bytes and the buffer stay the caller's. It takes the space it needs from the
 * request's images, and puts it back. 0 or -ENOMEM; walker__fini() only after 0.
 */
int walker__init(struct walker *w, const struct decode_request *request, struct branch_buffer *out);
void walker__fini(struct walker *w);

/*
 * From the PSB at `from` to the PSB at `to`, or to the end of the bytes. 0, or what stopped it.
 */
int walker__run(struct walker *w, const uint8_t *from, const uint8_t *to);

#endif
