// SPDX-License-Identifier: MIT
#include "decode/regions.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "decode/walk/walk.h"
#include "kernel/kernel.h"
#include "util/meter.h"
#include "util/vec.h"

/* Bytes of PT: so large that the cost of a fresh start at a PSB does not show. */
#define REGION_SIZE (256u << 10)
/*
 * Each thread decodes the program's code again, which costs more than a thread gains on fewer
 * regions.
 */
#define MIN_REGIONS_A_JOB 2

/* At least region_size bytes each, except the last one. */
struct regions {
	VEC(const uint8_t *) starts; /* ascending; each ends where the next one starts */
	const uint8_t *end;
};

static const uint8_t *end_of(const struct regions *regions, size_t i)
{
	return i + 1 < regions->starts.n ? regions->starts.v[i + 1] : regions->end;
}

/* Tells the request's meter that the region is done. */
static void count(const struct regions *regions, const struct decode_request *request, size_t i)
{
	meter__add(request->meter, (uint64_t)(end_of(regions, i) - regions->starts.v[i]));
}

struct receiver {
	raw_branches_fn take;
	void *ctx;
};

static int hand_over(void *ctx, struct branch_buffer *out)
{
	const struct receiver *receiver = ctx;

	return receiver->take(receiver->ctx, out->v, out->n);
}

/* Decodes all regions in the caller's thread. 0, -ENOMEM, or what `take` returned. */
static int decode_alone(const struct regions *regions, const struct decode_request *request,
			raw_branches_fn take, void *ctx)
{
	struct receiver receiver = {take, ctx};
	struct branch_buffer out = {.flush = hand_over, .ctx = &receiver};
	struct walker *walker = malloc(sizeof(*walker));
	int err = walker ? walker__init(walker, request, &out) : -ENOMEM;

	if (err) {
		free(walker);
		return err;
	}
	for (size_t i = 0; i < regions->starts.n && !err; i++) {
		err = walker__run(walker, regions->starts.v[i], end_of(regions, i));
		count(regions, request, i);
	}
	walker__fini(walker);
	free(walker);
	free(out.v);
	return err;
}

/* ---- with several threads */

/*
 * Workers decode regions in the order of the stream, and leave their branches in batches; the
 * caller's thread joins these in order. The number of waiting batches is limited, to limit memory;
 * the limit is twice as high for the region that is joined now.
 */
#define MAX_WAITING_A_JOB 16

struct batch {
	struct batch *next;
	struct branch *v;
	size_t n, cap;
};

struct region {
	struct batch *first, **last;
	bool done;
	int err;
};

struct pool {
	const struct regions *regions;
	const struct decode_request *request;
	unsigned int max_waiting; /* batches */
	pthread_mutex_t lock;	  /* of what follows */
	pthread_cond_t has_batch, has_room;
	struct region *states;
	size_t next, head; /* the next region to decode; the region that is joined */
	unsigned int n_waiting;
	struct batch *spare; /* empty batches, whose memory is used again */
	bool stop;
};

struct worker {
	pthread_t thread;
	struct pool *pool;
	size_t region;
	struct walker walker;
	struct branch_buffer out;
};

/* Hands over the buffer with its memory, and gives the walker a spare one. */
static int leave_batch(void *ctx, struct branch_buffer *out)
{
	struct worker *worker = ctx;
	struct pool *pool = worker->pool;
	struct region *region = &pool->states[worker->region];
	struct batch *batch = NULL, spare;

	if (!out->n)
		return 0;
	pthread_mutex_lock(&pool->lock);
	while (!pool->stop &&
	       pool->n_waiting >= pool->max_waiting * (worker->region == pool->head ? 2 : 1))
		pthread_cond_wait(&pool->has_room, &pool->lock);
	if (!pool->stop) {
		batch = pool->spare ?: calloc(1, sizeof(*batch));
		if (pool->spare)
			pool->spare = batch->next;
	}
	if (batch) {
		spare = *batch;
		*batch = (struct batch){.v = out->v, .n = out->n, .cap = out->cap};
		out->v = spare.v;
		out->cap = spare.cap;
		*region->last = batch;
		region->last = &batch->next;
		pool->n_waiting++;
		pthread_cond_signal(&pool->has_batch);
	}
	pthread_mutex_unlock(&pool->lock);
	return batch ? 0 : -ENOMEM;
}

static void *work(void *ctx)
{
	struct worker *worker = ctx;
	struct pool *pool = worker->pool;
	const struct regions *regions = pool->regions;
	int init_err, err;

	batch_thread__begin();
	worker->out = (struct branch_buffer){.flush = leave_batch, .ctx = worker};
	init_err = walker__init(&worker->walker, pool->request, &worker->out);
	pthread_mutex_lock(&pool->lock);
	while (!pool->stop && pool->next < regions->starts.n) {
		size_t i = worker->region = pool->next++;

		pthread_mutex_unlock(&pool->lock);
		err = init_err ? init_err
			       : walker__run(&worker->walker, regions->starts.v[i],
					     end_of(regions, i));
		pthread_mutex_lock(&pool->lock);
		pool->states[i].done = true;
		pool->states[i].err = err;
		pthread_cond_signal(&pool->has_batch);
		pthread_mutex_unlock(&pool->lock);
		if (pool->request->wants_source)
			images__prepare_source(pool->request->images);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	if (!init_err)
		walker__fini(&worker->walker);
	free(worker->out.v);
	return NULL;
}

/* The next batch of the region, or NULL at its end. */
static struct batch *wait_for_batch(struct pool *pool, struct region *region)
{
	struct batch *batch;

	while (!region->first && !region->done)
		pthread_cond_wait(&pool->has_batch, &pool->lock);
	batch = region->first;
	if (!batch)
		return NULL;
	region->first = batch->next;
	if (!region->first)
		region->last = &region->first;
	pool->n_waiting--;
	/* A worker woken for each batch would take the CPU from the joiner, the bottleneck. */
	if (pool->n_waiting % (pool->max_waiting / 2) == 0)
		pthread_cond_broadcast(&pool->has_room);
	return batch;
}

/* Passes the batches of all regions to `take`. 0, -ENOMEM, or what `take` returned. */
static int join_all(struct pool *pool, raw_branches_fn take, void *ctx)
{
	int err = 0;

	pthread_mutex_lock(&pool->lock);
	while (pool->head < pool->regions->starts.n && !err) {
		struct region *region = &pool->states[pool->head];
		struct batch *batch;

		while (!err && (batch = wait_for_batch(pool, region))) {
			pthread_mutex_unlock(&pool->lock);
			err = take(ctx, batch->v, batch->n);
			pthread_mutex_lock(&pool->lock);
			batch->next = pool->spare;
			pool->spare = batch;
		}
		if (!err)
			err = region->err;
		count(pool->regions, pool->request, pool->head);
		pool->head++;
		pthread_cond_broadcast(&pool->has_room);
	}
	pool->stop = true;
	pthread_cond_broadcast(&pool->has_room);
	pthread_mutex_unlock(&pool->lock);
	return err;
}

static void free_batches(struct batch *batch)
{
	while (batch) {
		struct batch *next = batch->next;

		free(batch->v);
		free(batch);
		batch = next;
	}
}

/* Like decode_alone(), with `jobs` threads. */
static int decode_parallel(const struct regions *regions, const struct decode_request *request,
			   raw_branches_fn take, void *ctx, unsigned int jobs)
{
	size_t n_regions = regions->starts.n;
	struct pool pool = {.regions = regions,
			    .request = request,
			    .max_waiting = MAX_WAITING_A_JOB * jobs,
			    .states = calloc(n_regions, sizeof(*pool.states))};
	struct worker *workers = calloc(jobs, sizeof(*workers));
	unsigned int n = 0;
	int err = -ENOMEM;

	if (!workers || !pool.states)
		goto out;
	for (size_t i = 0; i < n_regions; i++)
		pool.states[i].last = &pool.states[i].first;
	pthread_mutex_init(&pool.lock, NULL);
	pthread_cond_init(&pool.has_batch, NULL);
	pthread_cond_init(&pool.has_room, NULL);
	for (; n < jobs; n++) {
		workers[n].pool = &pool;
		if (pthread_create(&workers[n].thread, NULL, work, &workers[n]))
			break;
	}
	err = n ? join_all(&pool, take, ctx) : decode_alone(regions, request, take, ctx);
	for (unsigned int i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	for (size_t i = 0; i < n_regions; i++)
		free_batches(pool.states[i].first);
	free_batches(pool.spare);
	pthread_cond_destroy(&pool.has_room);
	pthread_cond_destroy(&pool.has_batch);
	pthread_mutex_destroy(&pool.lock);
out:
	free(pool.states);
	free(workers);
	return err;
}

/* ---- the number of threads */

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

int regions__run(const struct decode_request *request, raw_branches_fn take, void *ctx)
{
	size_t region_size = request->region_size ? request->region_size : REGION_SIZE;
	const uint8_t *end = request->aux->data + request->aux->size;
	const uint8_t *psb = packet__find_psb(request->aux->data, end);
	struct regions regions = {.end = end};
	unsigned int jobs;
	int err = 0;

	while (psb && !err) {
		err = VEC_ADD(&regions.starts, psb);
		if ((size_t)(end - psb) <= region_size)
			break;
		psb = packet__find_psb(psb + region_size, end);
	}
	jobs = jobs_for(request, regions.starts.n);
	if (!err)
		err = jobs > 1 ? decode_parallel(&regions, request, take, ctx, jobs)
			       : decode_alone(&regions, request, take, ctx);
	VEC_FINI(&regions.starts);
	return err;
}
