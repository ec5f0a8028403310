// SPDX-License-Identifier: MIT
#include "guest_maps.h"

#include <string.h>
#include <unistd.h>

#include "target/maps.h"

static void add_map(struct ptgen_shared *shared, const struct mapping *m, uint64_t tsc)
{
	struct ptgen_map *out;

	if (shared->n_maps == PTGEN_MAPS || strlen(m->path) >= sizeof(out->path)) {
		shared->lost++;
		return;
	}
	out = &shared->maps[shared->n_maps];
	*out = (struct ptgen_map){
		.tsc = tsc,
		.start = m->start,
		.len = m->end - m->start,
		.pgoff = m->pgoff,
		.ino = m->ino,
		.maj = m->maj,
		.min = m->min,
	};
	strcpy(out->path, m->path);
	shared->n_maps++;
}

static void copy_page(struct ptgen_shared *shared, uint64_t start)
{
	uint32_t i = 0;

	while (i < shared->n_pages && shared->pages[i].start != start)
		i++;
	if (i == PTGEN_PAGES) {
		shared->lost++;
		return;
	}
	shared->pages[i].start = start;
	memcpy(shared->pages[i].bytes, (const void *)start, PTGEN_PAGE);
	if (i == shared->n_pages)
		shared->n_pages++;
}

/*
 * A decoder's clock may be behind when it comes to new code: what was never anything else has been
 * there from the start.
 */
static uint64_t map_time(const struct guest_maps *maps, const struct mapping *m)
{
	for (size_t i = 0; i < maps->known.n; i++)
		if (maps->known.v[i].start < m->end && m->start < maps->known.v[i].end)
			return maps->shared->now;
	return PTGEN_TSC_START;
}

static const struct known_range *learn(struct guest_maps *maps, const struct mapping *m)
{
	bool is_file = m->path[0] == '/';
	struct known_range *out;

	if (is_file)
		add_map(maps->shared, m, map_time(maps, m));
	out = VEC_PUSH(&maps->known);
	if (!out)
		return NULL;
	*out = (struct known_range){m->start, m->end, .is_file = is_file};
	maps->last = maps->known.n - 1;
	return out;
}

static const struct known_range *look_up(struct guest_maps *maps, uint64_t at)
{
	struct mappings all = {0};
	const struct known_range *range = NULL;
	const struct mapping *m;

	if (!mappings__read(&all, getpid())) {
		m = mappings__find(&all, at);
		range = m ? learn(maps, m) : NULL;
	}
	mappings__fini(&all);
	if (!range)
		maps->shared->lost++;
	return range;
}

static bool holds(const struct known_range *range, uint64_t at)
{
	return !range->is_gone && at >= range->start && at < range->end;
}

static const struct known_range *find(struct guest_maps *maps, uint64_t at)
{
	if (maps->last < maps->known.n && holds(&maps->known.v[maps->last], at))
		return &maps->known.v[maps->last];
	for (size_t i = 0; i < maps->known.n; i++) {
		if (!holds(&maps->known.v[i], at))
			continue;
		maps->last = i;
		return &maps->known.v[i];
	}
	return look_up(maps, at);
}

void guest_maps__add_code(struct guest_maps *maps, uint64_t start, uint64_t end)
{
	for (uint64_t page = start & ~(uint64_t)(PTGEN_PAGE - 1); page < end; page += PTGEN_PAGE) {
		const struct known_range *range = find(maps, page < start ? start : page);

		if (range && !range->is_file)
			copy_page(maps->shared, page);
	}
}

void guest_maps__forget(struct guest_maps *maps, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < maps->known.n; i++)
		if (maps->known.v[i].start < end && start < maps->known.v[i].end)
			maps->known.v[i].is_gone = true;
}
