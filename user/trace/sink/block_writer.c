// SPDX-License-Identifier: MIT
#include "trace/sink/block_writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/sink/file_writer.h"
#include "kernel/huge_pages.h"

/* More than the caller can keep busy. */
#define MAX_JOBS 8
/* For each thread one, one that the caller fills, and one that waits for either. */
#define MAX_BLOCKS (MAX_JOBS + 2)

/* What is compressed should fit in a CPU's cache; disks like large pieces. */
#define CODEC_BLOCK_SIZE (1u << 20)
#define PLAIN_BLOCK_SIZE (4u << 20)

struct block_writer {
	struct file_writer file;
	const struct codec *codec;
	void *state; /* the codec's, where the caller's thread does the work */
	unsigned int n_jobs, n_threads;
	pthread_t threads[MAX_JOBS];
	uint64_t n_put; /* blocks handed on */
	size_t n_rest;	/* bytes that filled no page */
	uint8_t rest[FILE_WRITER_PAGE];

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	struct block *free, *first, **last; /* from first on: to be encoded */
	uint64_t n_written;
	uint64_t bytes;
	int err;
	bool stop;

	unsigned int n_blocks;
	struct block blocks[MAX_BLOCKS];
};

/* Compressing takes every CPU; writing alone, one. */
static unsigned int jobs_for(const struct codec *codec)
{
	long cpus = codec ? sysconf(_SC_NPROCESSORS_ONLN) : 1;

	return cpus < 1 ? 1 : cpus > MAX_JOBS ? MAX_JOBS : (unsigned int)cpus;
}

static bool add_block(struct block_writer *w)
{
	struct block *block = &w->blocks[w->n_blocks];

	block->size = w->codec ? CODEC_BLOCK_SIZE : PLAIN_BLOCK_SIZE;
	block->data = huge_pages__alloc(block->size);
	if (w->codec)
		block->encoded = malloc(w->codec->bound(block->size));
	w->n_blocks++;
	if (!block->data || (w->codec && !block->encoded))
		return false;
	block->next = w->free;
	w->free = block;
	return true;
}

struct block_writer *block_writer__new(int fd, const struct codec *codec)
{
	struct block_writer *w = calloc(1, sizeof(*w));
	bool ok = true;

	if (!w)
		return NULL;
	w->file.fd = fd;
	w->codec = codec;
	w->last = &w->first;
	w->n_jobs = jobs_for(codec);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	if (codec)
		ok = (w->state = codec->new ()) != NULL;
	while (ok && w->n_blocks < w->n_jobs + 2)
		ok = add_block(w);
	if (ok)
		return w;
	block_writer__free(w);
	return NULL;
}

/* What is handed on is written to the end, unless it fails. */
static void stop(struct block_writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	for (unsigned int i = 0; i < w->n_threads; i++)
		pthread_join(w->threads[i], NULL);
	w->n_threads = 0;
}

void block_writer__free(struct block_writer *w)
{
	if (!w)
		return;
	stop(w);
	for (unsigned int i = 0; i < w->n_blocks; i++) {
		free(w->blocks[i].data);
		free(w->blocks[i].encoded);
	}
	if (w->codec)
		w->codec->free(w->state);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* What of a block goes into the file; -errno. */
static ssize_t encode(const struct block_writer *w, void *state, const struct block *block,
		      const uint8_t **bytes)
{
	*bytes = w->codec ? block->encoded : block->data;
	if (!w->codec)
		return (ssize_t)block->n;
	return w->codec->encode(state, block->data, block->n, block->encoded,
				w->codec->bound(block->size));
}

/* Whoever's turn it is writes without the lock: nobody else does meanwhile. */
static void write_in_turn(struct block_writer *w, struct block *block, const uint8_t *bytes,
			  ssize_t n)
{
	int err;

	pthread_mutex_lock(&w->lock);
	while (w->n_written != block->number)
		pthread_cond_wait(&w->changed, &w->lock);
	err = w->err;
	pthread_mutex_unlock(&w->lock);
	if (!err)
		err = n < 0 ? (int)n : file_writer__write(&w->file, bytes, (size_t)n);
	pthread_mutex_lock(&w->lock);
	w->err = err;
	w->bytes += err ? 0 : (uint64_t)n;
	w->n_written++;
	block->next = w->free;
	w->free = block;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* The next one to be encoded; NULL where there will be none. */
static struct block *next_block(struct block_writer *w)
{
	struct block *block;

	pthread_mutex_lock(&w->lock);
	while (!w->first && !w->stop)
		pthread_cond_wait(&w->changed, &w->lock);
	block = w->first;
	if (block) {
		w->first = block->next;
		if (!w->first)
			w->last = &w->first;
	}
	pthread_mutex_unlock(&w->lock);
	return block;
}

static void process(struct block_writer *w, void *state, struct block *block)
{
	const uint8_t *bytes = NULL;
	ssize_t n = w->codec && !state ? -ENOMEM : encode(w, state, block, &bytes);

	write_in_turn(w, block, bytes, n);
}

static void *work(void *ctx)
{
	struct block_writer *w = ctx;
	void *state = w->codec ? w->codec->new () : NULL;
	struct block *block;

	while ((block = next_block(w)))
		process(w, state, block);
	if (w->codec)
		w->codec->free(state);
	return NULL;
}

static void start(struct block_writer *w)
{
	while (w->n_threads < w->n_jobs &&
	       !pthread_create(&w->threads[w->n_threads], NULL, work, w))
		w->n_threads++;
}

/* Where there are no threads. */
static void process_all(struct block_writer *w)
{
	while (!w->n_threads && w->first)
		process(w, w->state, next_block(w));
}

struct block *block_writer__take(struct block_writer *w)
{
	struct block *block;

	/* A file of one block is not worth a thread. */
	if (w->n_put && !w->n_threads)
		start(w);
	process_all(w);
	pthread_mutex_lock(&w->lock);
	while (!w->free)
		pthread_cond_wait(&w->changed, &w->lock);
	block = w->free;
	w->free = block->next;
	pthread_mutex_unlock(&w->lock);
	block->n = w->n_rest;
	memcpy(block->data, w->rest, w->n_rest);
	w->n_rest = 0;
	return block;
}

/* So that the file grows by whole pages. */
static void keep_rest(struct block_writer *w, struct block *block)
{
	if (w->codec)
		return;
	w->n_rest = block->n % FILE_WRITER_PAGE;
	block->n -= w->n_rest;
	memcpy(w->rest, block->data + block->n, w->n_rest);
}

void block_writer__put(struct block_writer *w, struct block *block)
{
	keep_rest(w, block);
	block->number = w->n_put++;
	block->next = NULL;
	pthread_mutex_lock(&w->lock);
	*w->last = block;
	w->last = &block->next;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

int block_writer__error(struct block_writer *w)
{
	int err;

	pthread_mutex_lock(&w->lock);
	err = w->err;
	pthread_mutex_unlock(&w->lock);
	return err;
}

int block_writer__finish(struct block_writer *w, uint64_t *bytes)
{
	stop(w);
	process_all(w);
	if (!w->err)
		w->err = file_writer__write(&w->file, w->rest, w->n_rest);
	w->bytes += w->n_rest;
	*bytes = w->bytes;
	return w->err;
}
