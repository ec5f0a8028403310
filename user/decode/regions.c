// SPDX-License-Identifier: MIT
#include "decode/regions.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/walk.h"

int regions__find(struct regions *regions, const uint8_t *bytes, size_t n, size_t size)
{
	const uint8_t *end = bytes + n, *psb = packet__find_psb(bytes, end);

	*regions = (struct regions){.end = end};
	while (psb) {
		const uint8_t **start = VEC_PUSH(&regions->starts);

		if (!start)
			return -ENOMEM;
		*start = psb;
		if ((size_t)(end - psb) <= size)
			break;
		psb = packet__find_psb(psb + size, end);
	}
	return 0;
}

void regions__fini(struct regions *regions)
{
	VEC_FINI(&regions->starts);
}

const uint8_t *regions__end_of(const struct regions *regions, size_t i)
{
	return i + 1 < regions->starts.n ? regions->starts.v[i + 1] : regions->end;
}

static int flush_to_joiner(void *ctx, struct outbox *out)
{
	return joiner__take(ctx, out->v, out->n);
}

int regions__decode(const struct regions *regions, const struct decode_request *request,
		    struct joiner *joiner)
{
	struct outbox out = {.flush = flush_to_joiner, .ctx = joiner};
	struct walker *walker = malloc(sizeof(*walker));
	struct space *space = space__get(request->images, request->aux->pid, request->all_branches);
	int err = walker && space ? 0 : -ENOMEM;

	if (!err)
		walker__init(walker, request->rec, request->aux, space, &out);
	for (size_t i = 0; i < regions->starts.n && !err; i++)
		err = walker__run(walker, regions->starts.v[i], regions__end_of(regions, i));
	if (walker && space)
		walker__fini(walker);
	if (space)
		space__put(space);
	free(walker);
	free(out.v);
	return err;
}
