// SPDX-License-Identifier: MIT
#include "sampling.h"

#include <stdio.h>

struct sched_taker {
	struct recording *rec;
	uint64_t after_ns;
};

/* Idle is nobody. */
static int take(void *ctx, const struct mt_sched *entry)
{
	struct sched_taker *taker = ctx;
	struct rec_thread by = {.pid = (pid_t)entry->by_tgid,
				.tid = (pid_t)entry->by_tid,
				.start_ns = entry->time_ns};
	int err;

	if (!entry->by_tid || entry->time_ns <= taker->after_ns ||
	    entry->time_ns > taker->rec->frozen_ns)
		return 0;
	err = recording__add_sched_by(taker->rec, entry);
	snprintf(by.comm, sizeof(by.comm), "%.15s", entry->by_comm);
	return err || recording__find_thread(taker->rec, by.pid, by.tid)
		       ? err
		       : recording__add_thread(taker->rec, &by);
}

int sampling__take_scheds(struct sched_log *log, struct recording *rec, uint64_t after_ns)
{
	struct sched_taker taker = {.rec = rec, .after_ns = after_ns};
	int err = log ? sched_log__take(log, take, &taker) : 0;

	sched_log__free(log);
	return err;
}
