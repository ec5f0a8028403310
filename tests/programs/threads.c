// SPDX-License-Identifier: MIT
/*
 * Worker threads, each with its own journal. One of them, the keeper, compacts its journal when it
 * is full: its slow iteration. A counter behind a mutex is shared by all, and short-lived helper
 * threads start and end.
 */
#include "sample.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>

enum { BLOCK_WORDS = 16, ACCOUNTS = 64 };

struct record {
	uint64_t account;
	uint64_t amount;
};

struct shared {
	pthread_mutex_t lock;
	uint64_t jobs_done; /* under lock */
	atomic_uint workers_left;
};

struct worker {
	struct sample options;
	struct shared *shared;
	pthread_t thread;
	unsigned number;
	uint64_t random;
	struct record *journal; /* the keeper's: table_size records; else NULL */
	uint64_t totals[ACCOUNTS];
};

TRACED uint64_t checksum_block(const uint64_t *block)
{
	uint64_t sum = 0;

	for (int i = 0; i < BLOCK_WORDS; i++)
		sum = (sum ^ block[i]) * 0x100000001b3u;
	return sum;
}

TRACED void fill_block(struct worker *w, uint64_t *block)
{
	for (int i = 0; i < BLOCK_WORDS; i++)
		block[i] = sample__random(&w->random);
}

TRACED void do_job(struct worker *w)
{
	uint64_t block[BLOCK_WORDS];

	fill_block(w, block);
	w->totals[checksum_block(block) % ACCOUNTS]++;
}

TRACED void count_done(struct shared *shared, uint64_t jobs)
{
	pthread_mutex_lock(&shared->lock);
	shared->jobs_done += jobs;
	pthread_mutex_unlock(&shared->lock);
}

TRACED void merge_record(uint64_t *totals, struct record *record)
{
	uint64_t *total = &totals[record->account % ACCOUNTS];

	*total = (*total * 31 + record->amount) % 1000003;
	record->amount = *total;
}

TRACED void journal_compact(struct worker *w)
{
	for (uint64_t i = 0; i < w->options.table_size; i++)
		merge_record(w->totals, &w->journal[i]);
}

TRACED void one_iter(struct worker *w)
{
	for (uint64_t i = 0; i < w->options.batch; i++)
		do_job(w);
	if (w->journal && w->options.done % w->options.slow_every == 0)
		journal_compact(w);
	count_done(w->shared, w->options.batch);
}

static void *worker__main(void *argument)
{
	struct worker *w = argument;
	char name[16];

	snprintf(name, sizeof(name), "worker-%u", w->number);
	prctl(PR_SET_NAME, name);
	while (sample__next(&w->options))
		one_iter(w);
	atomic_fetch_sub(&w->shared->workers_left, 1);
	return NULL;
}

TRACED void housekeeping(struct shared *shared)
{
	count_done(shared, 0);
}

static void *helper__main(void *argument)
{
	prctl(PR_SET_NAME, "helper");
	housekeeping(argument);
	return NULL;
}

static void run_helper(struct shared *shared)
{
	pthread_t helper;

	if (!pthread_create(&helper, NULL, helper__main, shared))
		pthread_join(helper, NULL);
}

static void worker__start(struct worker *w, const struct sample *options, struct shared *shared,
			  unsigned number)
{
	*w = (struct worker){.options = *options,
			     .shared = shared,
			     .number = number,
			     .random = 88172645463325252u + number};
	if (number == 0) {
		w->journal = calloc(options->table_size, sizeof(*w->journal));
		if (!w->journal)
			abort();
		for (uint64_t i = 0; i < options->table_size; i++)
			w->journal[i].account = sample__random(&w->random);
	} else {
		w->options.times = false; /* -times is the keeper's */
	}
	if (pthread_create(&w->thread, NULL, worker__main, w))
		abort();
}

int main(int argc, char **argv)
{
	static const struct sample native = {.slow_every = 1000,
					     .table_size = 3000000,
					     .batch = 400,
					     .pause_ns = 1000000,
					     .tick_ns = 100000000,
					     .threads = 4};
	static const struct sample small = {.slow_every = 25,
					    .table_size = 600,
					    .batch = 1,
					    .tick_ns = 500000000,
					    .threads = 4};
	struct shared shared = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct worker *workers;
	struct sample options;

	sample__init(&options, argv, &native, &small);
	workers = calloc(options.threads, sizeof(*workers));
	if (!workers)
		abort();
	shared.workers_left = (unsigned)options.threads;
	for (unsigned i = 0; i < options.threads; i++)
		worker__start(&workers[i], &options, &shared, i);
	sample__announce();
	while (atomic_load(&shared.workers_left) && !sample_stop) {
		run_helper(&shared);
		sample__pause(options.tick_ns);
	}
	for (unsigned i = 0; i < options.threads; i++)
		pthread_join(workers[i].thread, NULL);
	sample__fini(&workers[0].options);
	free(workers[0].journal);
	free(workers);
	return 0;
}
