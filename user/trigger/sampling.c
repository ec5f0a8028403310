// SPDX-License-Identifier: MIT
/* What the trigger has for a source that samples. */
#include "trigger/trigger.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>

#include "trigger.skel.h"
#include "trigger/trigger_internal.h"

int trigger__sample_gate(const struct trigger *trigger)
{
	return bpf_program__fd(trigger__skel(trigger)->progs.on_sample);
}

typedef int (*entry_taker_fn)(void *ctx, const struct mt_entry *entry);

static int take_log(const struct bpf_map *log, entry_taker_fn take, void *ctx)
{
	const size_t size = sizeof(struct mt_entry) * MT_ENTRY_LOG;
	int err = 0, fd = bpf_map__fd(log);
	const struct mt_entry *entries = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (entries == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < MT_ENTRY_LOG && !err; i++)
		if (entries[i].start_ns)
			err = take(ctx, &entries[i]);
	munmap((void *)entries, size);
	return err;
}

int trigger__entries(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *entry), void *ctx)
{
	return take_log(trigger__skel(trigger)->maps.entry_log, take, ctx);
}

/* One that ends meanwhile is in the log; behind it the map begins anew, so there is a limit. */
static int take_open(int map, entry_taker_fn take, void *ctx)
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
