// SPDX-License-Identifier: MIT
#include "decode/space.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kernel/kernel.h"
#include "util/page.h"

/* A multiple of the page size, for madvise(). */
#define ENTRIES_SIZE (sizeof(struct memo_entry) << MEMO_BITS)

/* Bytes of PT in a ring. For fewer bytes, clearing large pages takes longer than decoding. */
#define MANY (1u << 20)

void space__forget_runs(struct space *space)
{
	arena__free(&space->effects);
	/* The pages are zero when touched again. */
	madvise(space->entries, ENTRIES_SIZE, MADV_DONTNEED);
}

static void space__free(struct images_kept *kept)
{
	struct space *space = (struct space *)kept;

	arena__free(&space->effects);
	free(space->entries);
	blocks__free(space->blocks);
	code_map__free(space->map);
	free(space);
}

static struct space *space__new(struct images *images, pid_t pid, bool tell_all)
{
	struct space *space = calloc(1, sizeof(*space));
	bool has_many = false;

	if (!space)
		return NULL;
	*space = (struct space){
		.kept = {.pid = pid, .free = space__free}, .images = images, .tell_all = tell_all};
	VEC_EACH(&images__recording(images)->aux, aux)
		has_many |= aux->size >= MANY;
	space->map = code_map__new();
	space->blocks = space->map ? blocks__new(space->map, tell_all) : NULL;
	space->entries =
		has_many ? huge_pages__alloc(ENTRIES_SIZE) : aligned_alloc(PAGE, ENTRIES_SIZE);
	if (!space->blocks || !space->entries) {
		space__free(&space->kept);
		return NULL;
	}
	space__forget_runs(space);
	return space;
}

static bool fits(const struct images_kept *kept, int tell_all)
{
	return ((const struct space *)kept)->tell_all == tell_all;
}

struct space *space__get(struct images *images, pid_t pid, bool tell_all)
{
	struct images_kept *kept = images__take(images, pid, fits, tell_all);

	return kept ? (struct space *)kept : space__new(images, pid, tell_all);
}

void space__put(struct space *space)
{
	images__keep(space->images, &space->kept);
}

/*
 * Empties the space if the time is before a mapping of the process that was applied. 1: emptied; 0:
 * not; or -ENOMEM.
 */
static int rewind_to(struct space *space, uint64_t time_ns)
{
	const struct recording *rec = images__recording(space->images);
	struct code_map *map;
	struct blocks *blocks;

	for (size_t i = space->next_map; i-- > 0;) {
		if (rec->maps.v[i].time_ns <= time_ns)
			return 0;
		if (rec->maps.v[i].pid == space->kept.pid)
			break;
		space->next_map = i;
	}
	if (!space->next_map)
		return 0;
	map = code_map__new();
	blocks = map ? blocks__new(map, space->tell_all) : NULL;
	if (!blocks) {
		code_map__free(map);
		return -ENOMEM;
	}
	blocks__free(space->blocks);
	code_map__free(space->map);
	space__forget_runs(space);
	space->map = map;
	space->blocks = blocks;
	space->next_map = 0;
	return 1;
}

int space__set_time(struct space *space, uint64_t time_ns, bool *cleared)
{
	unsigned int replaced;
	size_t before;
	int err = rewind_to(space, time_ns);

	*cleared = err > 0;
	if (err < 0)
		return err;
	before = space->next_map;
	replaced = code_map__replaced(space->map);
	err = images__apply(space->images, space->kept.pid, time_ns, &space->next_map, space->map);
	if (space->next_map == before)
		return err;
	if (code_map__replaced(space->map) == replaced) {
		blocks__code_added(space->blocks);
	} else {
		space__forget_runs(space);
		blocks__clear(space->blocks);
		*cleared = true;
	}
	return err;
}
