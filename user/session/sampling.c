// SPDX-License-Identifier: MIT
#include "session/sampling.h"

#include <stdio.h>

static int add_name(struct recording *rec, const struct mt_sched *entry)
{
	struct rec_thread by = {.pid = (pid_t)entry->by_tgid,
				.tid = (pid_t)entry->by_tid,
				.start_ns = entry->time_ns};

	snprintf(by.comm, sizeof(by.comm), "%.15s", entry->by_comm);
	return recording__find_thread(rec, by.pid, by.tid) ? 0 : recording__add_thread(rec, &by);
}

static int take(void *ctx, const struct mt_sched *entry)
{
	struct recording *rec = ctx;
	int err;

	if (entry->time_ns > rec->frozen_ns)
		return 0;
	err = recording__add_sched_by(rec, entry);
	return err || !entry->by_tid ? err : add_name(rec, entry);
}

int sampling__take_scheds(struct sched_log *log, struct recording *rec)
{
	return log ? sched_log__take(log, take, rec) : 0;
}
