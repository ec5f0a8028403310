// SPDX-License-Identifier: MIT
#include "decode/decode.h"

#include <intel-pt.h>
#include <stdio.h>

#include "decode/join.h"
#include "decode/regions.h"

int decode__run(const struct decode_request *request)
{
	struct joiner joiner;
	int err = joiner__init(&joiner, request);

	if (!err)
		err = regions__run(request, joiner__take, &joiner);
	joiner__fini(&joiner);
	return err;
}

int decode__thread(const struct recording *rec, const struct rec_aux *aux, struct images *images,
		   struct code_map *map, branches_fn take, void *ctx, struct decode_totals *totals)
{
	return decode__run(&(struct decode_request){.rec = rec,
						    .aux = aux,
						    .images = images,
						    .map = map,
						    .take = take,
						    .ctx = ctx,
						    .totals = totals});
}

void decode__library_version(char *text, size_t size)
{
	struct pt_version version = pt_library_version();

	snprintf(text, size, "%u.%u.%u", version.major, version.minor, version.build);
}
