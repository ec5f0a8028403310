// SPDX-License-Identifier: MIT
#include "session/taken_time.h"

#include <errno.h>
#include <stdlib.h>

#include "target/cpu_quota.h"
#include "util/vec.h"

static bool is_known(const struct recording *rec, const struct mt_pressure *entry)
{
	for (size_t i = 0; i < rec->threads.n; i++)
		if (rec->threads.v[i].tid == (pid_t)entry->tid &&
		    rec->threads.v[i].pid == (pid_t)entry->tgid)
			return true;
	return false;
}

static int take(void *ctx, const struct mt_pressure *entry)
{
	struct recording *rec = ctx;
	struct rec_taken *out;

	if (entry->time_ns > rec->frozen_ns || !is_known(rec, entry))
		return 0;
	out = VEC_PUSH(&rec->taken);
	if (!out)
		return -ENOMEM;
	*out = (struct rec_taken){.pid = (pid_t)entry->tgid,
				  .tid = (pid_t)entry->tid,
				  .by_quota = entry->kind == MT_PRESSURE_THROTTLED,
				  .until_ns = entry->time_ns,
				  .ns = entry->ns};
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct rec_taken *x = a, *y = b;

	return (x->until_ns > y->until_ns) - (x->until_ns < y->until_ns);
}

static int note_quota(struct recording *rec, pid_t pid)
{
	struct cpu_quota quota;

	if (recording__find_quota(rec, pid) || cpu_quota__find("/proc", pid, &quota) ||
	    !quota.text[0])
		return 0;
	return recording__set_quota(rec, pid, quota.text);
}

int taken_time__note(const struct pressure *pressure, struct recording *rec)
{
	int err;

	rec->knows_taken = pressure != NULL;
	if (!pressure)
		return 0;
	rec->taken.n = 0;
	err = pressure__take(pressure, take, rec);
	VEC_SORT(&rec->taken, by_time);
	for (size_t i = 0; i < rec->taken.n && !err; i++)
		if (rec->taken.v[i].by_quota)
			err = note_quota(rec, rec->taken.v[i].pid);
	return err;
}
