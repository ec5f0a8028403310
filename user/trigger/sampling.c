// SPDX-License-Identifier: MIT
/* The trigger's part for a source that samples: its filter and its logs. */
#include "trigger/trigger.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "trigger.skel.h"
#include "trigger/trigger_internal.h"

static uint64_t time_of(const void *entry)
{
	return __atomic_load_n((const uint64_t *)entry, __ATOMIC_ACQUIRE);
}

/* An entry that is overwritten this often while it is read is left out. */
#define TRIES 8

bool log_entry__copy(void *out, const void *entry, size_t size)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t time_ns = time_of(entry);

		if (!time_ns)
			return false;
		memcpy(out, entry, size);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (time_of(entry) == time_ns && !memcmp(out, entry, size))
			return true;
	}
	return false;
}

/* Loads one of the two variants, or none without config->also. */
static int select_also(struct trigger_bpf *skel, const struct trigger_config *config, bool lru)
{
	bool task = config->also && !lru;

	lru = config->also && lru;
	skel->rodata->also_at_entry = config->also_at_entry;
	skel->rodata->also_by_insn = config->also_by_insn;
	skel->rodata->also_by_goroutine = config->also_by_goroutine;
	bpf_program__set_autoload(skel->progs.on_also, task);
	bpf_program__set_autoload(skel->progs.on_also_return, task);
	bpf_program__set_autoload(skel->progs.on_also_lru, lru);
	bpf_program__set_autoload(skel->progs.on_also_return_lru, lru);
	bpf_map__set_autocreate(skel->maps.also_task_latches, task);
	bpf_map__set_autocreate(skel->maps.also_lru_latches, lru || config->go_waits);
	bpf_map__set_autocreate(skel->maps.also_log, config->also);
	return lru ? trigger__size_lru(skel->maps.also_lru_latches, config) : 0;
}

static int select_go_waits(struct trigger_bpf *skel, const struct trigger_config *config)
{
	bool on = config->go_waits;

	bpf_program__set_autoload(skel->progs.on_go_park, on);
	bpf_program__set_autoload(skel->progs.on_go_ready, on);
	bpf_program__set_autoload(skel->progs.on_go_execute, on);
	bpf_map__set_autocreate(skel->maps.go_parks, on);
	bpf_map__set_autocreate(skel->maps.park_log, on);
	bpf_map__set_autocreate(skel->maps.ready_log, on);
	bpf_map__set_autocreate(skel->maps.park_stacks, on);
	return on ? trigger__size_lru(skel->maps.go_parks, config) : 0;
}

int trigger__select_sampling(struct trigger_bpf *skel, const struct trigger_config *config,
			     enum trigger_latch latch)
{
	bpf_program__set_autoload(skel->progs.on_sample, config->sampling);
	bpf_map__set_autocreate(skel->maps.entry_log, config->sampling);
	return select_also(skel, config, latch == TRIGGER_LATCH_LRU_HASH)
		       ?: select_go_waits(skel, config);
}

int trigger__sample_gate(const struct trigger *trigger)
{
	return bpf_program__fd(trigger__skel(trigger)->progs.on_sample);
}

/* Maps a log. NULL with errno, which is 0 if there is no such log. The caller calls munmap(). */
static const void *map_log(const struct bpf_map *map, size_t size)
{
	void *p;

	errno = 0;
	if (!bpf_map__autocreate(map))
		return NULL;
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
	return p == MAP_FAILED ? NULL : p;
}

static int take_log(const struct bpf_map *map, int (*take)(void *ctx, const struct mt_entry *entry),
		    void *ctx)
{
	const size_t size = sizeof(struct mt_entry) * MT_ENTRY_LOG;
	const struct mt_entry *entries = map_log(map, size);
	struct mt_entry entry;
	int err = 0;

	if (!entries)
		return -errno;
	for (size_t i = 0; i < MT_ENTRY_LOG && !err; i++)
		if (log_entry__copy(&entry, &entries[i], sizeof(entry)))
			err = take(ctx, &entry);
	munmap((void *)entries, size);
	return err;
}

static int take_go_stacks(const struct bpf_map *map,
			  int (*take)(void *ctx, const struct mt_go_stack *stack), void *ctx)
{
	const size_t size = sizeof(struct mt_go_stack) * MT_GO_STACKS;
	const struct mt_go_stack *log = map_log(map, size);
	struct mt_go_stack stack;
	int err = 0;

	if (!log)
		return -errno;
	for (size_t i = 0; i < MT_GO_STACKS && !err; i++)
		if (log_entry__copy(&stack, &log[i], sizeof(stack)))
			err = take(ctx, &stack);
	munmap((void *)log, size);
	return err;
}

int trigger__ready(const struct trigger *trigger,
		   int (*take)(void *ctx, const struct mt_go_stack *ready), void *ctx)
{
	return take_go_stacks(trigger__skel(trigger)->maps.ready_log, take, ctx);
}

int trigger__parks(const struct trigger *trigger,
		   int (*take)(void *ctx, const struct mt_go_stack *park), void *ctx)
{
	return take_go_stacks(trigger__skel(trigger)->maps.park_stacks, take, ctx);
}

uint64_t trigger__also_calls(const struct trigger *trigger)
{
	return trigger__skel(trigger)->bss->last_also;
}

uint64_t trigger__go_wait_hits(const struct trigger *trigger)
{
	return trigger__skel(trigger)->bss->n_go_wait_hits;
}

int trigger__entries(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *entry), void *ctx)
{
	const struct trigger_bpf *skel = trigger__skel(trigger);
	int err = take_log(skel->maps.entry_log, take, ctx);

	if (!err)
		err = take_log(skel->maps.also_log, take, ctx);
	if (err || trigger->go_waits_stopped)
		return err;
	return take_log(skel->maps.park_log, take, ctx);
}

/* If a region ends during the walk, it is in the log and the walk starts again: hence the limit. */
static int take_open(int map, int (*take)(void *ctx, const struct mt_entry *entry), void *ctx)
{
	uint32_t key, *last = NULL;
	struct mt_entry region;
	int err = 0;

	for (int i = 0; i < MT_OPEN_REGIONS && !err && !bpf_map_get_next_key(map, last, &key);
	     i++) {
		last = &key;
		if (!bpf_map_lookup_elem(map, &key, &region))
			err = take(ctx, &region);
	}
	return err;
}

int trigger__regions(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *region), void *ctx)
{
	const struct trigger_bpf *skel = trigger__skel(trigger);
	int err = take_open(bpf_map__fd(skel->maps.open_regions), take, ctx);

	return err ? err : take_log(skel->maps.region_log, take, ctx);
}
