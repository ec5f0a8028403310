// SPDX-License-Identifier: MIT
#include "convert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/elf/elf_image.h"
#include "util/cleanup.h"

/* attr.config of the intel_pt event that would write such a stream (its format folder in sysfs). */
#define CONFIG_PT	      (1u << 0)
#define CONFIG_CYC	      (1u << 1)
#define CONFIG_MTC	      (1u << 9)
#define CONFIG_TSC	      (1u << 10)
#define CONFIG_NORETCOMP      (1u << 11)
#define CONFIG_BRANCH	      (1u << 13)
#define CONFIG_MTC_FREQ_SHIFT 14

struct ring {
	struct ptgen_thread *thread;
	uint8_t *bytes;
	uint64_t mask;
};

static void write_ring(void *ctx, const uint8_t *bytes, unsigned int len)
{
	struct ring *ring = ctx;

	for (unsigned int i = 0; i < len; i++)
		ring->bytes[ring->thread->written++ & ring->mask] = bytes[i];
}

/* What the encoder still held back when the process ended. */
static void complete(struct ptgen_shared *shared, uint32_t i)
{
	struct ring ring = {&shared->threads[i], ptgen_shared__ring(shared, i),
			    shared->config.ring_size - 1};
	struct pt_stream *stream = &ring.thread->stream;

	if (ring.thread->busy)
		return;
	stream->emit = write_ring;
	stream->ctx = &ring;
	pt_stream__flush(stream);
}

static int add_aux(struct ptgen_shared *shared, uint32_t i, struct recording *rec)
{
	const struct ptgen_thread *t = &shared->threads[i];
	const uint8_t *ring = ptgen_shared__ring(shared, i);
	uint64_t ring_size = shared->config.ring_size, at = t->written & (ring_size - 1);
	bool wrapped = t->written > ring_size;
	size_t size = wrapped ? ring_size : t->written;
	size_t older = wrapped ? ring_size - at : 0;
	struct rec_aux aux = {.pid = shared->pid,
			      .tid = t->tid,
			      .tsc = t->stream.now,
			      .size = size,
			      .wrapped = wrapped,
			      .data = malloc(size ? size : 1)};

	if (!aux.data)
		return -ENOMEM;
	memcpy(aux.data, ring + at, older);
	memcpy(aux.data + older, ring, size - older);
	return recording__add_aux(rec, &aux);
}

static int add_threads(struct ptgen_shared *shared, struct recording *rec)
{
	int err = 0;

	for (uint32_t i = 0; i < shared->n_threads && i < PTGEN_THREADS && !err; i++) {
		const struct ptgen_thread *t = &shared->threads[i];
		struct rec_thread thread = {
			.pid = shared->pid, .tid = t->tid, .start_ns = ptgen__ns(t->start_tsc)};

		memcpy(thread.comm, t->comm, sizeof(thread.comm));
		complete(shared, i);
		err = recording__add_thread(rec, &thread);
		if (!err)
			err = add_aux(shared, i, rec);
	}
	return err;
}

static int add_map(struct recording *rec, const struct rec_map *model, char *path)
{
	struct rec_map map = *model;

	map.pid = map.tid = rec->pid;
	map.path = path;
	return recording__add_map(rec, &map);
}

/* The build id of the file that was mapped, by which a later one of its name is told from it. */
static int add_file(struct recording *rec, const struct ptgen_map *m)
{
	struct rec_file file = {.path = (char *)m->path, .ino = m->ino, .fd = -1, .debug_fd = -1};
	_cleanup_close_ int fd = open(m->path, O_RDONLY | O_CLOEXEC);
	struct elf_image *image = NULL;
	struct stat st;

	if (recording__find_file(rec, m->path, m->ino))
		return 0;
	if (fd >= 0 && !fstat(fd, &st) && st.st_ino == m->ino)
		image = elf_image__open(fd, m->path);
	if (image)
		snprintf(file.build_id, sizeof(file.build_id), "%s", elf_image__build_id(image));
	elf_image__free(image);
	return file.build_id[0] ? recording__add_file(rec, &file) : 0;
}

static int add_maps(const struct ptgen_shared *shared, struct recording *rec)
{
	int err = 0;

	for (uint32_t i = 0; i < shared->n_maps && !err; i++) {
		const struct ptgen_map *m = &shared->maps[i];
		struct rec_map map = {.time_ns = ptgen__ns(m->tsc),
				      .start = m->start,
				      .len = m->len,
				      .pgoff = m->pgoff,
				      .ino = m->ino,
				      .maj = m->maj,
				      .min = m->min};

		err = add_map(rec, &map, (char *)m->path);
		if (!err)
			err = add_file(rec, m);
	}
	return err;
}

/* Pages of code that was in no file. */
static int add_pages(struct ptgen_shared *shared, struct recording *rec)
{
	int err = 0;

	for (uint32_t i = 0; i < shared->n_pages && !err; i++) {
		struct ptgen_page *page = &shared->pages[i];
		struct rec_map map = {.time_ns = ptgen__ns(PTGEN_TSC_START),
				      .start = page->start,
				      .len = PTGEN_PAGE};
		char path[40];
		struct rec_image image = {.path = path,
					  .start = page->start,
					  .data = page->bytes,
					  .size = PTGEN_PAGE};

		snprintf(path, sizeof(path), "[code at %llx]", (unsigned long long)page->start);
		err = add_map(rec, &map, path);
		if (!err)
			err = recording__add_image(rec, &image);
	}
	return err;
}

static void describe_stream(const struct pt_stream_config *config, struct rec_pt_config *pt)
{
	*pt = (struct rec_pt_config){
		.time_shift = PTGEN_TIME_SHIFT,
		.time_mult = PTGEN_TIME_MULT,
		.config = CONFIG_PT | CONFIG_TSC | CONFIG_BRANCH,
		.nom_freq = PTGEN_NOM_FREQ,
	};
	if (!config->return_compression)
		pt->config |= CONFIG_NORETCOMP;
	if (config->nom_freq)
		pt->config |= CONFIG_CYC;
	if (!config->ctc_ticks)
		return;
	pt->config |= CONFIG_MTC | (uint64_t)config->mtc_freq << CONFIG_MTC_FREQ_SHIFT;
	pt->mtc_freq = config->mtc_freq;
	pt->tsc_ctc_num = PTGEN_CTC_TICKS;
	pt->tsc_ctc_den = 1;
}

static int set_names(const struct ptgen_shared *shared, struct recording *rec)
{
	rec->source = strdup("ptgen");
	rec->command = strdup(shared->config.comm);
	rec->freeze = strdup("at the end of the program");
	return rec->source && rec->command && rec->freeze ? 0 : -ENOMEM;
}

int ptgen__convert(struct ptgen_shared *shared, struct recording *rec)
{
	int err = set_names(shared, rec);

	rec->pid = shared->pid;
	describe_stream(&shared->config.stream, &rec->pt);
	if (!err)
		err = add_threads(shared, rec);
	rec->frozen_ns = ptgen__ns(shared->now);
	if (!err)
		err = add_maps(shared, rec);
	return err ? err : add_pages(shared, rec);
}
