// SPDX-License-Identifier: MIT
#include "decode/decode.h"

#include <errno.h>
#include <unistd.h>

#include "decode/join.h"
#include "decode/regions.h"

/* Of PT: large enough that starting anew at its PSB costs nothing. */
#define REGION_SIZE (256u << 10)
/* Less is not worth a thread: each one decodes the code for itself. */
#define MIN_REGIONS_A_JOB 2

static unsigned int jobs_for(const struct decode_request *request, size_t n_regions)
{
	size_t jobs = request->jobs ? request->jobs : n_regions / MIN_REGIONS_A_JOB;

	if (!request->jobs && jobs > 1) {
		long cpus = sysconf(_SC_NPROCESSORS_ONLN);

		if (cpus > 0 && jobs > (size_t)cpus)
			jobs = (size_t)cpus;
	}
	return (unsigned int)(jobs < n_regions ? jobs : n_regions);
}

int regions__run(const struct decode_request *request, outbox_fn take, void *ctx)
{
	size_t region_size = request->region_size ? request->region_size : REGION_SIZE;
	struct regions regions;
	unsigned int jobs;
	int err;

	err = regions__find(&regions, request->aux->data, request->aux->size, region_size);
	jobs = jobs_for(request, regions.starts.n);
	if (!err)
		err = jobs > 1 ? regions__decode_parallel(&regions, request, take, ctx, jobs)
			       : regions__decode(&regions, request, take, ctx);
	regions__fini(&regions);
	return err;
}

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
