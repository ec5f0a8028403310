// SPDX-License-Identifier: MIT
/* What the trigger has for a source that samples. */
#include "trigger/trigger.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>

#include "trigger.skel.h"
#include "trigger/trigger_internal.h"

int trigger__sample_gate(const struct trigger *trigger)
{
	return bpf_program__fd(trigger__skel(trigger)->progs.on_sample);
}

int trigger__entries(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *entry), void *ctx)
{
	const size_t size = sizeof(struct mt_entry) * MT_ENTRY_LOG;
	int err = 0, fd = bpf_map__fd(trigger__skel(trigger)->maps.entry_log);
	const struct mt_entry *entries = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (entries == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < MT_ENTRY_LOG && !err; i++)
		if (entries[i].start_ns)
			err = take(ctx, &entries[i]);
	munmap((void *)entries, size);
	return err;
}
