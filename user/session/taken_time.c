// SPDX-License-Identifier: MIT
#include "session/taken_time.h"

#include <errno.h>
#include <stdlib.h>

#include "kernel/steal.h"
#include "target/cpu_quota.h"
#include "target/pid_set.h"
#include "util/vec.h"

struct taking {
	struct recording *rec;
	struct pid_set pids; /* the processes of the target */
	uint64_t since_ns;   /* the log goes on over all snapshots: this one begins here */
};

/*
 * The kernel's log is of all processes, and the recording may know the names of all, too. Those of
 * the target have samples or switches.
 */
static int find_processes(struct taking *taking)
{
	const struct recording *rec = taking->rec;
	int err = 0;

	for (size_t i = 0; i < rec->samples.n && !err; i++)
		err = pid_set__add(&taking->pids, rec->samples.v[i].pid);
	for (size_t i = 0; i < rec->scheds.n && !err; i++)
		err = pid_set__add(&taking->pids, rec->scheds.v[i].pid);
	taking->since_ns = UINT64_MAX;
	for (size_t i = 0; i < rec->scheds.n; i++)
		if (rec->scheds.v[i].time_ns < taking->since_ns)
			taking->since_ns = rec->scheds.v[i].time_ns;
	return err;
}

static int take(void *ctx, const struct mt_pressure *entry)
{
	const struct taking *taking = ctx;
	struct recording *rec = taking->rec;
	struct rec_taken *out;

	if (entry->time_ns > rec->frozen_ns || !pid_set__has(&taking->pids, (pid_t)entry->tgid))
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

/* The kernel must have been built to count it, and the machine be told. */
static enum rec_steal steal_of(const struct pressure *pressure)
{
	struct steal_facts facts = steal__facts();

	if (facts.is_guest && !pressure__counts_stolen(pressure))
		return REC_STEAL_NOT_TOLD;
	return steal__is_told(&facts) ? REC_STEAL_TOLD : REC_STEAL_NOT_TOLD;
}

int taken_time__note(const struct pressure *pressure, struct recording *rec)
{
	struct taking taking = {.rec = rec};
	int err;

	rec->knows_taken = pressure != NULL;
	if (!pressure)
		return 0;
	rec->steal = steal_of(pressure);
	rec->taken.n = 0;
	err = find_processes(&taking);
	if (!err)
		err = pressure__take(pressure, take, &taking);
	pid_set__fini(&taking.pids);
	VEC_SORT(&rec->taken, by_time);
	for (size_t i = 0; i < rec->taken.n && !err; i++)
		if (rec->taken.v[i].by_quota)
			err = note_quota(rec, rec->taken.v[i].pid);
	return err;
}
