// SPDX-License-Identifier: MIT
#include "decode/space.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/images_internal.h"

static void space__free(struct space *space)
{
	if (!space)
		return;
	memo__free(space->memo);
	blocks__free(space->blocks);
	code_map__free(space->map);
	free(space);
}

/* Bytes of PT in a ring. Of fewer, to clear large pages takes longer than to decode. */
#define MANY (1u << 20)

static bool has_many(const struct recording *rec)
{
	for (size_t i = 0; i < rec->aux.n; i++)
		if (rec->aux.v[i].size >= MANY)
			return true;
	return false;
}

static struct space *space__new(struct images *images, pid_t pid, bool tell_all)
{
	struct space *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	*space = (struct space){.images = images, .pid = pid, .tell_all = tell_all};
	space->map = code_map__new();
	space->blocks = space->map ? blocks__new(space->map, tell_all) : NULL;
	space->memo = memo__new(has_many(images->rec));
	if (space->blocks && space->memo) {
		space->entries = memo__entries(space->memo);
		return space;
	}
	space__free(space);
	return NULL;
}

struct space *space__get(struct images *images, pid_t pid, bool tell_all)
{
	struct space **at, *space;

	pthread_mutex_lock(&images->lock);
	at = &images->idle;
	while (*at && ((*at)->pid != pid || (*at)->tell_all != tell_all))
		at = &(*at)->next;
	space = *at;
	if (space)
		*at = space->next;
	pthread_mutex_unlock(&images->lock);
	return space ? space : space__new(images, pid, tell_all);
}

void space__put(struct space *space)
{
	struct images *images = space->images;

	pthread_mutex_lock(&images->lock);
	space->next = images->idle;
	images->idle = space;
	pthread_mutex_unlock(&images->lock);
}

void space__free_idle(struct images *images)
{
	while (images->idle) {
		struct space *space = images->idle;

		images->idle = space->next;
		space__free(space);
	}
}

/* Back to a time before something was mapped: from the start. */
static int rewind_to(struct space *space, uint64_t time_ns)
{
	const struct recording *rec = space->images->rec;
	struct code_map *map;
	struct blocks *blocks;

	for (size_t i = space->next_map; i-- > 0;) {
		if (rec->maps.v[i].time_ns <= time_ns)
			return 0;
		if (rec->maps.v[i].pid == space->pid)
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
	memo__clear(space->memo);
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
	err = images__apply(space->images, space->pid, time_ns, &space->next_map, space->map);
	if (space->next_map == before)
		return err;
	if (code_map__replaced(space->map) == replaced) {
		blocks__code_added(space->blocks);
	} else {
		memo__clear(space->memo);
		blocks__clear(space->blocks);
		*cleared = true;
	}
	return err;
}
