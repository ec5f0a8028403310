/* SPDX-License-Identifier: MIT */
/* PT bytes and code to branches. This folder is the only user of libipt's decoders. */
#ifndef MTBPF_DECODE_DECODE_H
#define MTBPF_DECODE_DECODE_H

#include <stddef.h>

#include "decode/pace.h"
#include "decode/pt_note.h"
#include "decode/request.h"

/*
 * Decodes one thread's PT and hands its branches to `take`, in order, in the caller's thread, a few
 * thousand at a time. `map` starts empty; during each call of `take` it shows the code as it was at
 * the branches. Adds to totals. 0; -ENOMEM; or what `take` returned. Damage in the stream is no
 * error: it is a BRANCH_GAP.
 */
int decode__run(const struct decode_request *request);

/* The same, without branches that stay in their function, and on all CPUs. */
int decode__thread(const struct recording *rec, const struct rec_aux *aux, struct images *images,
		   struct code_map *map, branches_fn take, void *ctx, struct decode_totals *totals);

/* libipt's version, from the library itself. */
void decode__library_version(char *text, size_t size);

#endif
