// SPDX-License-Identifier: MIT
#include "decode/decode.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/join.h"
#include "decode/walk.h"

static int flush_to_joiner(void *ctx, struct outbox *out)
{
	return joiner__take(ctx, out->v, out->n);
}

static int run(const struct decode_request *request, struct space *space)
{
	struct joiner joiner;
	struct outbox out = {.flush = flush_to_joiner, .ctx = &joiner};
	const uint8_t *end = request->aux->data + request->aux->size;
	const uint8_t *psb = packet__find_psb(request->aux->data, end);
	struct walker walker;
	int err;

	if (!psb)
		return 0;
	joiner__init(&joiner, request);
	walker__init(&walker, request->rec, request->aux, space, &out);
	err = walker__run(&walker, psb, end);
	walker__fini(&walker);
	free(out.v);
	return err;
}

int decode__run(const struct decode_request *request)
{
	struct space *space = space__get(request->images, request->aux->pid, request->all_branches);
	int err;

	if (!space)
		return -ENOMEM;
	err = run(request, space);
	space__put(space);
	return err;
}

int decode__thread(const struct recording *rec, const struct rec_aux *aux, struct images *images,
		   struct code_map *map, branch_fn fn, void *ctx, struct decode_totals *totals)
{
	return decode__run(&(struct decode_request){.rec = rec,
						    .aux = aux,
						    .images = images,
						    .map = map,
						    .fn = fn,
						    .ctx = ctx,
						    .totals = totals});
}
