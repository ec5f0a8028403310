// SPDX-License-Identifier: MIT
#include "decode/regions.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/walk/walk.h"
#include "util/meter.h"

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

void regions__count(const struct regions *regions, const struct decode_request *request, size_t i)
{
	meter__add(request->meter, (uint64_t)(regions__end_of(regions, i) - regions->starts.v[i]));
}

struct taker {
	outbox_fn take;
	void *ctx;
};

static int hand_over(void *ctx, struct outbox *out)
{
	const struct taker *taker = ctx;

	return taker->take(taker->ctx, out->v, out->n);
}

int regions__decode(const struct regions *regions, const struct decode_request *request,
		    outbox_fn take, void *ctx)
{
	struct taker taker = {take, ctx};
	struct outbox out = {.flush = hand_over, .ctx = &taker};
	struct walker *walker = malloc(sizeof(*walker));
	int err = walker ? walker__init(walker, request, &out) : -ENOMEM;

	if (err) {
		free(walker);
		return err;
	}
	for (size_t i = 0; i < regions->starts.n && !err; i++) {
		err = walker__run(walker, regions->starts.v[i], regions__end_of(regions, i));
		regions__count(regions, request, i);
	}
	walker__fini(walker);
	free(walker);
	free(out.v);
	return err;
}
