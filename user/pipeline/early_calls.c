// SPDX-License-Identifier: MIT
#include "pipeline/early_calls.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"
/* 64 bytes each: what one thread has written should still be in a cache that the other reaches. */
#define BATCH_CALLS 1024
#define MAX_BATCHES 16
/*
 * The writer is woken for several batches at once: a thread that wakes up often takes the CPU from
 * those that find calls.
 */
#define WORTH_WAKING (MAX_BATCHES / 2)

struct batch {
	struct batch *next;
	struct early_owner owner;
	VEC(struct call) calls;
	VEC(const struct call_site *) sites;
};

struct early_queue {
	struct trace_writer *writer;
	struct batch *filling;
	bool has_thread;
	pthread_t thread;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t has_batch, has_free;
	struct batch *first, **last, *free;
	unsigned int n_waiting; /* from first on */
	bool stop;

	struct batch batches[MAX_BATCHES];
};

struct early_queue *early_queue__new(struct trace_writer *writer)
{
	struct early_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->writer = writer;
	queue->last = &queue->first;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->has_batch, NULL);
	pthread_cond_init(&queue->has_free, NULL);
	for (size_t i = 0; i < MAX_BATCHES; i++) {
		queue->batches[i].next = queue->free;
		queue->free = &queue->batches[i];
	}
	return queue;
}

/* Writes the batch, and puts it back among the free ones. */
static void write_batch(struct early_queue *queue, struct batch *batch)
{
	struct call_tree tree = {.pid = batch->owner.pid, .tid = batch->owner.tid};

	tree.calls.v = batch->calls.v;
	tree.calls.n = batch->calls.n;
	trace_writer__set_base(queue->writer, batch->owner.base_ns);
	trace_writer__calls(queue->writer, &tree, batch->sites.v);
	batch->calls.n = batch->sites.n = 0;
	pthread_mutex_lock(&queue->lock);
	batch->next = queue->free;
	queue->free = batch;
	pthread_cond_signal(&queue->has_free);
	pthread_mutex_unlock(&queue->lock);
}

static void *work(void *ctx)
{
	struct early_queue *queue = ctx;
	struct batch *batch;

	batch_thread__begin();
	for (;;) {
		pthread_mutex_lock(&queue->lock);
		while (!queue->first && !queue->stop)
			pthread_cond_wait(&queue->has_batch, &queue->lock);
		batch = queue->first;
		if (batch) {
			queue->n_waiting--;
			queue->first = batch->next;
			if (!queue->first)
				queue->last = &queue->first;
		}
		pthread_mutex_unlock(&queue->lock);
		if (!batch)
			return NULL;
		write_batch(queue, batch);
	}
}

/* Hands the batch to the thread that writes; without one, writes it in the caller's thread. */
static void pass_on(struct early_queue *queue)
{
	struct batch *batch = queue->filling;

	queue->filling = NULL;
	batch->next = NULL;
	/*
	 * Starts the thread with the first batch that is full or whose owner has no more calls: a
	 * trace of a few calls is not worth a thread.
	 */
	if (!queue->has_thread)
		queue->has_thread = !pthread_create(&queue->thread, NULL, work, queue);
	if (!queue->has_thread) {
		write_batch(queue, batch);
		return;
	}
	pthread_mutex_lock(&queue->lock);
	*queue->last = batch;
	queue->last = &batch->next;
	if (++queue->n_waiting >= WORTH_WAKING)
		pthread_cond_signal(&queue->has_batch);
	pthread_mutex_unlock(&queue->lock);
}

void early_queue__begin(struct early_queue *queue, const struct early_owner *owner)
{
	struct batch *batch = queue->filling;

	if (batch && (batch->calls.n >= BATCH_CALLS || batch->owner.pid != owner->pid ||
		      batch->owner.tid != owner->tid || batch->owner.base_ns != owner->base_ns))
		pass_on(queue);
	if (queue->filling)
		return;
	pthread_mutex_lock(&queue->lock);
	while (!queue->free)
		pthread_cond_wait(&queue->has_free, &queue->lock);
	batch = queue->free;
	queue->free = batch->next;
	pthread_mutex_unlock(&queue->lock);
	batch->owner = *owner;
	queue->filling = batch;
}

struct call *early_queue__add(struct early_queue *queue, const struct call_site *site)
{
	struct batch *batch = queue->filling;
	const struct call_site **place = VEC_PUSH(&batch->sites);
	struct call *call = place ? VEC_PUSH(&batch->calls) : NULL;

	if (!call)
		return NULL;
	*place = site;
	return call;
}

void early_queue__finish(struct early_queue *queue)
{
	if (queue->has_thread) {
		pthread_mutex_lock(&queue->lock);
		queue->stop = true;
		pthread_cond_signal(&queue->has_batch);
		pthread_mutex_unlock(&queue->lock);
		pthread_join(queue->thread, NULL);
		queue->has_thread = false;
	}
	if (queue->filling)
		write_batch(queue, queue->filling);
	queue->filling = NULL;
}

void early_queue__free(struct early_queue *queue)
{
	if (!queue)
		return;
	early_queue__finish(queue);
	for (size_t i = 0; i < MAX_BATCHES; i++) {
		VEC_FINI(&queue->batches[i].calls);
		VEC_FINI(&queue->batches[i].sites);
	}
	pthread_cond_destroy(&queue->has_free);
	pthread_cond_destroy(&queue->has_batch);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

/* Other code has come to lie where code was: sites must be looked up again. */
static void retire_sites(struct early_calls *early)
{
	if (VEC_ADD(&early->retired, early->part.sites)) {
		early->failed = true;
		return;
	}
	early->part.sites = (struct call_sites){0};
	early->site_ip = 0;
}

/* Returns the outermost inlined call around the call's site; NULL: none. */
static const struct inlined *outermost(void *ctx, const struct call *call)
{
	struct early_calls *early = ctx;
	const struct inlined *inlined;

	if (code_map__replaced(early->map) != early->replaced) {
		early->replaced = code_map__replaced(early->map);
		retire_sites(early);
	}
	early->site_ip = call->call_ip;
	early->site = call_sites__find_in(&early->part.sites, call->call_ip, early->map);
	if (early->no_inline || !early->site)
		return NULL;
	inlined = early->site->inlined;
	while (inlined && inlined->outer)
		inlined = inlined->outer;
	return inlined;
}

static const struct call_site *site_of(const struct early_calls *early, const struct call *call)
{
	if (call->call_ip == early->site_ip && call->kind != CALL_INLINED)
		return early->site;
	return call__site(call, &early->part.sites);
}

/* Hands on one call. Its depth is relative to the first one. */
static int pass_call(struct early_calls *early, const struct call *call, uint32_t depth)
{
	struct call *out = early_queue__add(early->queue, site_of(early, call));

	if (!out)
		return -ENOMEM;
	*out = *call;
	out->depth = depth;
	early->n++;
	return 0;
}

/* Each slice of inlined code comes before its first call. */
static int pass_with_inlined(struct early_calls *early)
{
	const struct call_tree *part = &early->part;
	const struct inline_slice *slice, *end;
	int err = inline_pass__find(&early->inlined, &early->part);

	slice = early->inlined.slices.v;
	end = slice + early->inlined.slices.n;
	for (uint32_t i = 0; i < part->calls.n && !err; i++) {
		for (; slice < end && slice->before == i && !err; slice++)
			err = pass_call(early, &slice->call, slice->call.depth);
		if (!err)
			err = pass_call(early, &part->calls.v[i], part->calls.v[i].depth);
	}
	return err;
}

static int take(void *ctx, struct call *calls, size_t n)
{
	struct early_calls *early = ctx;
	struct call_tree *part = &early->part;
	uint32_t depth = calls->depth;
	int err = early->failed ? -ENOMEM : 0;

	part->calls.v = calls;
	part->calls.n = n;
	early_queue__begin(early->queue,
			   &(struct early_owner){part->pid, part->tid, *early->base_ns});
	if (!err && !early->no_inline && part->sites.n_inlined) {
		const struct call_site *site = site_of(early, calls);

		if (n > 1 || (site && site->inlined))
			return pass_with_inlined(early);
	}
	for (size_t i = 0; i < n && !err; i++)
		err = pass_call(early, &calls[i], calls[i].depth - depth);
	return err;
}

struct early_calls *early_calls__new(struct early_queue *queue, pid_t pid, pid_t tid,
				     struct code_map *map)
{
	struct early_calls *early = malloc(sizeof(*early));

	if (!early)
		return NULL;
	*early = (struct early_calls){
		.consumer = {.take = take, .outermost = outermost, .ctx = early},
		.queue = queue,
		.map = map,
		.replaced = code_map__replaced(map),
		.part = {.pid = pid, .tid = tid},
	};
	return early;
}

void early_calls__free(struct early_calls *early)
{
	if (!early)
		return;
	VEC_FINI_EACH(&early->retired, e, call_sites__fini(e));
	inline_pass__fini(&early->inlined);
	call_sites__fini(&early->part.sites);
	free(early);
}
