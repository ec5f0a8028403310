// SPDX-License-Identifier: MIT
#include "capture/code/code_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/symbols/perf_map.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/page.h"
#include "util/units.h"

/* Entries of a pagemap that are read at once. */
#define ENTRIES 512

struct copier {
	struct recording *rec;
	pid_t pid;
	int pagemap; /* -1: cannot be read, all pages are taken to be there */
	size_t left; /* bytes that may still be taken */
	size_t cut;  /* bytes that were not */
};

static int add_run(struct copier *c, const struct mapping *m, uint64_t start, size_t size)
{
	struct rec_image image = {.path = m->path, .start = start, .pid = c->pid};
	ssize_t n;
	int err = 0;

	if (size > c->left) {
		c->cut += size - c->left;
		size = c->left;
	}
	if (!size)
		return 0;
	image.data = malloc(size);
	if (!image.data)
		return -ENOMEM;
	n = process__read_memory(c->pid, start, image.data, size);
	image.size = n > 0 ? (size_t)n : 0;
	if (image.size)
		err = recording__add_image(c->rec, &image);
	c->left -= image.size;
	free(image.data);
	return err;
}

static size_t read_entries(const struct copier *c, uint64_t start, size_t n,
			   uint64_t entries[static ENTRIES])
{
	ssize_t got;

	if (n > ENTRIES)
		n = ENTRIES;
	got = c->pagemap < 0
		      ? -1
		      : pread(c->pagemap, entries, 8 * n, (off_t)(start / PAGE * sizeof(*entries)));
	if (got >= 8)
		return (size_t)got / 8;
	for (size_t i = 0; i < n; i++)
		entries[i] = PAGE_PRESENT;
	return n;
}

/* What a JIT has reserved and not used yet takes no place: runs of pages that are there. */
static int copy_mapping(struct copier *c, const struct mapping *m)
{
	uint64_t entries[ENTRIES], at = m->start, run = 0;
	int err = 0;

	while (at < m->end && !err) {
		size_t n = read_entries(c, at, (m->end - at) / PAGE, entries);

		for (size_t i = 0; i < n && !err; i++, at += PAGE) {
			bool is_there = entries[i] & (PAGE_PRESENT | PAGE_SWAPPED);

			if (is_there && !run)
				run = at;
			if (!is_there && run) {
				err = add_run(c, m, run, at - run);
				run = 0;
			}
		}
	}
	return err || !run ? err : add_run(c, m, run, m->end - run);
}

/* Not the kernel's own pages, nor what is read from a file. */
static bool is_wanted(const struct copier *c, const struct mapping *m)
{
	if (!(m->prot & PROT_EXEC))
		return false;
	if (m->path[0] == '/')
		return !recording__find_file(c->rec, m->path, m->ino);
	return mapping__is_memory(m);
}

static int copy_perf_map(const struct copier *c)
{
	size_t left = PERF_MAPS_MAX;
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; i < c->rec->perf_maps.n; i++) {
		size_t size = strlen(c->rec->perf_maps.v[i].text);

		if (c->rec->perf_maps.v[i].pid != c->pid)
			left -= size < left ? size : left;
	}
	text = perf_map__read(c->pid, left);
	return text ? recording__add_perf_map(c->rec, c->pid, text) : 0;
}

static int copy_all(struct copier *c, const struct mappings *maps)
{
	size_t before = c->rec->images.n;
	int err = 0;

	for (size_t i = 0; i < maps->n && !err; i++)
		if (is_wanted(c, &maps->v[i]))
			err = copy_mapping(c, &maps->v[i]);
	if (!err && c->rec->images.n > before)
		err = copy_perf_map(c);
	return err;
}

int code_copy__take(struct recording *rec, pid_t pid, size_t limit)
{
	struct copier copier = {.rec = rec, .pid = pid, .left = limit};
	char path[64], kept[UNITS_TEXT_SIZE], cut[UNITS_TEXT_SIZE];
	struct mappings maps;
	int err;

	if (mappings__read(&maps, pid))
		return 0;
	/* Of a process that has exited meanwhile /proc shows no mapping. */
	if (maps.n)
		recording__drop_copies(rec, pid);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	copier.pagemap = open(path, O_RDONLY | O_CLOEXEC);
	err = copy_all(&copier, &maps);
	if (copier.pagemap >= 0)
		close(copier.pagemap);
	mappings__fini(&maps);
	if (copier.cut)
		log__warn("process %d has more code in memory than the %s that are copied: %s of "
			  "it are not, and show as gaps",
			  (int)pid, units__format_size(kept, limit),
			  units__format_size(cut, copier.cut));
	return err;
}
