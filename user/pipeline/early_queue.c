// SPDX-License-Identifier: MIT
#include "pipeline/early_queue.h"

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

static void write_batch(struct early_queue *queue, const struct batch *batch)
{
	struct call_tree tree = {.pid = batch->owner.pid, .tid = batch->owner.tid};

	tree.calls.v = batch->calls.v;
	tree.calls.n = batch->calls.n;
	trace_writer__set_base(queue->writer, batch->owner.base_ns);
	trace_writer__calls(queue->writer, &tree, batch->sites.v);
}

/* Returns NULL if no batch will come. */
static struct batch *next_batch(struct early_queue *queue)
{
	struct batch *batch;

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
	return batch;
}

static void put_back(struct early_queue *queue, struct batch *batch)
{
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
	while ((batch = next_batch(queue))) {
		write_batch(queue, batch);
		put_back(queue, batch);
	}
	return NULL;
}

/* With the first batch that is full: a trace of a few calls is not worth a thread. */
static bool has_thread(struct early_queue *queue)
{
	if (!queue->has_thread)
		queue->has_thread = !pthread_create(&queue->thread, NULL, work, queue);
	return queue->has_thread;
}

static void hand_on(struct early_queue *queue)
{
	struct batch *batch = queue->filling;

	queue->filling = NULL;
	batch->next = NULL;
	pthread_mutex_lock(&queue->lock);
	*queue->last = batch;
	queue->last = &batch->next;
	if (++queue->n_waiting >= WORTH_WAKING)
		pthread_cond_signal(&queue->has_batch);
	pthread_mutex_unlock(&queue->lock);
}

/* Writes the batch in the caller's thread. */
static void write_filling(struct early_queue *queue)
{
	write_batch(queue, queue->filling);
	put_back(queue, queue->filling);
	queue->filling = NULL;
}

static void pass_on(struct early_queue *queue)
{
	if (has_thread(queue))
		hand_on(queue);
	else
		write_filling(queue);
}

static struct batch *wait_for_free(struct early_queue *queue)
{
	struct batch *batch;

	pthread_mutex_lock(&queue->lock);
	while (!queue->free)
		pthread_cond_wait(&queue->has_free, &queue->lock);
	batch = queue->free;
	queue->free = batch->next;
	pthread_mutex_unlock(&queue->lock);
	return batch;
}

static bool is_of(const struct batch *batch, const struct early_owner *owner)
{
	return batch->owner.pid == owner->pid && batch->owner.tid == owner->tid &&
	       batch->owner.base_ns == owner->base_ns;
}

void early_queue__begin(struct early_queue *queue, const struct early_owner *owner)
{
	const struct batch *filling = queue->filling;

	if (filling && (filling->calls.n >= BATCH_CALLS || !is_of(filling, owner)))
		pass_on(queue);
	if (!queue->filling) {
		queue->filling = wait_for_free(queue);
		queue->filling->owner = *owner;
	}
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
		write_filling(queue);
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
