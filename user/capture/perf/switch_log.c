// SPDX-License-Identifier: MIT
#include "capture/perf/switch_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void switch_log__fini(struct switch_log *log)
{
	for (size_t i = 0; i < log->cpus.n; i++)
		VEC_FINI(&log->cpus.v[i].list);
	VEC_FINI(&log->cpus);
}

/* Made where it is new; NULL: no memory. */
static struct cpu_switches *of_cpu(struct switch_log *log, int cpu)
{
	struct cpu_switches *c;

	for (size_t i = 0; i < log->cpus.n; i++)
		if (log->cpus.v[i].cpu == cpu)
			return &log->cpus.v[i];
	c = VEC_PUSH(&log->cpus);
	if (c)
		*c = (struct cpu_switches){.cpu = cpu, .last_ns = log->start_ns};
	return c;
}

static int add(struct cpu_switches *c, uint64_t time_ns, pid_t pid, pid_t tid)
{
	return VEC_ADD(
		&c->list,
		(struct rec_switch){.time_ns = time_ns, .cpu = c->cpu, .pid = pid, .tid = tid});
}

int switch_log__began(struct switch_log *log, int cpu, uint64_t time_ns, pid_t pid, pid_t tid)
{
	struct cpu_switches *c = of_cpu(log, cpu);

	if (!c)
		return -ENOMEM;
	return c->list.n ? 0 : switch_log__on(log, cpu, time_ns, pid, tid);
}

int switch_log__on(struct switch_log *log, int cpu, uint64_t time_ns, pid_t pid, pid_t tid)
{
	struct cpu_switches *c = of_cpu(log, cpu);

	if (!c)
		return -ENOMEM;
	c->last_ns = time_ns;
	return add(c, time_ns, pid, tid);
}

int switch_log__off(struct switch_log *log, int cpu, uint64_t time_ns, pid_t pid, pid_t tid)
{
	struct cpu_switches *c = of_cpu(log, cpu);
	int err = 0;

	if (!c)
		return -ENOMEM;
	/* A thread that is being released has no tid any more: -1. */
	if (!c->list.n && pid > 0 && tid > 0 && time_ns > log->start_ns)
		err = add(c, log->start_ns, pid, tid);
	c->last_ns = time_ns;
	return err ? err : add(c, time_ns, 0, 0);
}

int switch_log__lost(struct switch_log *log, int cpu, uint64_t time_ns)
{
	struct cpu_switches *c = of_cpu(log, cpu);
	uint64_t since_ns;

	if (!c)
		return -ENOMEM;
	since_ns = c->last_ns;
	c->last_ns = time_ns;
	return add(c, since_ns, 0, 0);
}

/* What ran at from_ns began before it. */
static void forget(struct cpu_switches *c, uint64_t from_ns)
{
	size_t n = 0;

	while (n + 1 < c->list.n && c->list.v[n + 1].time_ns <= from_ns)
		n++;
	memmove(c->list.v, c->list.v + n, (c->list.n - n) * sizeof(*c->list.v));
	c->list.n -= n;
}

/*
 * The head is an offset in the ring (perf_aux_output_end()), so a whole round since the last time
 * goes unseen: less is forgotten then than could be.
 */
int switch_log__traced(struct switch_log *log, int cpu, uint64_t time_ns, uint64_t head)
{
	struct cpu_switches *c = of_cpu(log, cpu);

	if (!c)
		return -ENOMEM;
	c->written += (head - c->head) & (log->ring_size - 1);
	c->head = head;
	if (c->written - c->mark_written < log->ring_size)
		return 0;
	forget(c, c->mark_ns);
	c->mark_written = c->written;
	c->mark_ns = time_ns;
	return 0;
}

bool switch_log__has(const struct switch_log *log, pid_t pid)
{
	for (size_t i = 0; i < log->cpus.n; i++) {
		const struct cpu_switches *c = &log->cpus.v[i];

		for (size_t j = 0; j < c->list.n; j++)
			if (c->list.v[j].pid == pid)
				return true;
	}
	return false;
}

/* The CPU whose next one is the earliest; -1: none has any. */
static ssize_t earliest(const struct switch_log *log, const size_t *next)
{
	const struct rec_switch *best = NULL;
	ssize_t at = -1;

	for (size_t i = 0; i < log->cpus.n; i++) {
		const struct cpu_switches *c = &log->cpus.v[i];

		if (next[i] >= c->list.n || (best && c->list.v[next[i]].time_ns >= best->time_ns))
			continue;
		best = &c->list.v[next[i]];
		at = (ssize_t)i;
	}
	return at;
}

int switch_log__add_to(const struct switch_log *log, struct recording *rec)
{
	size_t *next = calloc(log->cpus.n + 1, sizeof(*next));
	ssize_t i;
	int err = next ? 0 : -ENOMEM;

	while (!err && (i = earliest(log, next)) >= 0)
		err = recording__add_switch(rec, &log->cpus.v[i].list.v[next[i]++]);
	free(next);
	return err;
}
