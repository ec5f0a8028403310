// SPDX-License-Identifier: MIT
/* From what the stepper left in shared memory to a recording. */
#include "capture/soft/soft_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"

/* attr.config of a real event that would write this: pt, tsc, branch; noretcomp as asked. */
#define CONFIG_PT	 (1u << 0)
#define CONFIG_TSC	 (1u << 10)
#define CONFIG_NORETCOMP (1u << 11)
#define CONFIG_BRANCH	 (1u << 13)

static void drain_thread(struct source *source, uint32_t i)
{
	struct soft_thread *t = &source->shared->threads[i];
	const uint8_t *ring = soft_shared__ring(source->shared, i);
	uint64_t size = source->shared->ring_size, ready = t->ready, at = t->taken & (size - 1);
	size_t n = ready - t->taken, first = size - at < n ? size - at : n;
	struct spool *spool = &source->spools[i];

	if (spool->fd < 0 && !spool->err)
		spool->err = spool__open(spool, source->config.spool_dir);
	if (!spool->err && n)
		spool__write(spool, ring + at, first);
	if (!spool->err && n > first)
		spool__write(spool, ring, n - first);
	/* Where the disk takes no more, the thread does not wait for it. */
	t->taken = ready;
}

void soft_source__drain(struct source *source)
{
	for (uint32_t i = 0; source->spools && i < source->shared->n_threads; i++)
		drain_thread(source, i);
}

static int read_spool(struct source *source, uint32_t i, struct recording *rec)
{
	struct soft_thread *t = &source->shared->threads[i];
	struct rec_aux aux = {.pid = source->config.pid, .tid = t->tid, .tsc = t->last_ns};

	/* It steps no more: what it wrote as it ended is there as well. */
	t->ready = t->written;
	drain_thread(source, i);
	return source->spools[i].fd < 0 ? source->spools[i].err
					: spool__finish(&source->spools[i], &aux, rec);
}

static void say_waited(const struct soft_shared *shared)
{
	char text[UNITS_TEXT_SIZE];

	if (shared->waited_ns > 10000000)
		log__info("the program waited for the disk for %s",
			  units__format_duration(text, shared->waited_ns));
}

static int read_ring(struct source *source, uint32_t i, struct recording *rec)
{
	const struct soft_shared *shared = source->shared;
	const struct soft_thread *t = &shared->threads[i];
	const uint8_t *ring = soft_shared__ring(source->shared, i);
	bool wrapped = t->written > shared->ring_size;
	size_t size = wrapped ? shared->ring_size : t->written;
	size_t head = t->written & (shared->ring_size - 1);
	struct rec_aux aux = {.pid = source->config.pid,
			      .tid = t->tid,
			      .tsc = t->last_ns,
			      .size = size,
			      .wrapped = wrapped};

	aux.data = malloc(size ? size : 1);
	if (!aux.data)
		return -ENOMEM;
	if (wrapped) {
		memcpy(aux.data, ring + head, size - head);
		memcpy(aux.data + size - head, ring, head);
	} else {
		memcpy(aux.data, ring, size);
	}
	return recording__add_aux(rec, &aux);
}

static int read_threads(struct source *source, struct recording *rec)
{
	const struct soft_shared *shared = source->shared;
	int err = 0;

	for (uint32_t i = 0; i < shared->n_threads && !err; i++) {
		const struct soft_thread *t = &shared->threads[i];
		struct rec_thread thread = {
			.pid = source->config.pid, .tid = t->tid, .start_ns = t->start_ns};

		memcpy(thread.comm, t->comm, sizeof(thread.comm));
		err = recording__add_thread(rec, &thread);
		if (!err)
			err = source->spools ? read_spool(source, i, rec)
					     : read_ring(source, i, rec);
	}
	return err;
}

static int read_maps(struct source *source, struct recording *rec)
{
	const struct soft_shared *shared = source->shared;
	int err = 0;

	for (uint32_t i = 0; i < shared->n_maps && !err; i++) {
		const struct soft_map *m = &shared->maps[i];
		struct rec_map map = {.time_ns = m->time_ns,
				      .start = m->start,
				      .len = m->len,
				      .pgoff = m->pgoff,
				      .ino = m->ino,
				      .maj = m->maj,
				      .min = m->min,
				      .pid = source->config.pid,
				      .tid = source->config.pid,
				      .path = (char *)m->path};

		err = recording__add_map(rec, &map);
	}
	if (shared->lost_maps)
		log__warn("%u mappings were not recorded: code in them shows as gaps",
			  shared->lost_maps);
	rec->drops[DROP_MAPPINGS] += shared->lost_maps;
	rec->drops[DROP_THREADS] += shared->lost_threads;
	return err;
}

/* The code of the [uprobes] page, which nobody can read from outside. */
static int add_uprobes(const struct soft_shared *shared, struct recording *rec)
{
	struct rec_image image = {.path = "[uprobes]",
				  .start = shared->uprobes_start,
				  .data = (uint8_t *)shared->uprobes_page,
				  .size = shared->uprobes_len};

	return shared->uprobes_start ? recording__add_image(rec, &image) : 0;
}

int soft_source__read(struct source *source, struct recording *rec)
{
	int err;

	/* A clock of our own, in nanoseconds: CLOCK_MONOTONIC, as bpf_ktime_get_ns() has it. */
	rec->pt = (struct rec_pt_config){
		.time_mult = 1,
		.config = CONFIG_PT | CONFIG_TSC | CONFIG_BRANCH |
			  (source->config.return_compression ? 0 : CONFIG_NORETCOMP),
		.nom_freq = SOFT_CBR,
	};
	rec->frozen_ns = source->shared->frozen_ns ? source->shared->frozen_ns : clock__now_ns();
	err = read_threads(source, rec);
	if (!err)
		err = read_maps(source, rec);
	if (!err)
		err = add_uprobes(source->shared, rec);
	if (err)
		log__error("cannot read what was recorded: %s", strerror(-err));
	say_waited(source->shared);
	log__debug("soft: %llu instructions stepped", (unsigned long long)source->shared->steps);
	return err;
}
