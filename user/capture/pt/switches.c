// SPDX-License-Identifier: MIT
#include "capture/pt/switches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void switches__fini(struct switches *switches)
{
	for (size_t i = 0; i < switches->cpus.n; i++)
		VEC_FINI(&switches->cpus.v[i].list);
	VEC_FINI(&switches->cpus);
}

/* Made where it is new; NULL: no memory. */
static struct cpu_switches *of_cpu(struct switches *switches, int cpu)
{
	struct cpu_switches *c;

	for (size_t i = 0; i < switches->cpus.n; i++)
		if (switches->cpus.v[i].cpu == cpu)
			return &switches->cpus.v[i];
	c = VEC_PUSH(&switches->cpus);
	if (c)
		*c = (struct cpu_switches){.cpu = cpu, .last_ns = switches->start_ns};
	return c;
}

static int add(struct cpu_switches *c, uint64_t time_ns, pid_t pid, pid_t tid)
{
	struct rec_switch *sw = VEC_PUSH(&c->list);

	if (!sw)
		return -ENOMEM;
	*sw = (struct rec_switch){.time_ns = time_ns, .cpu = c->cpu, .pid = pid, .tid = tid};
	return 0;
}

int switches__began(struct switches *switches, int cpu, uint64_t time_ns, pid_t pid, pid_t tid)
{
	struct cpu_switches *c = of_cpu(switches, cpu);

	if (!c)
		return -ENOMEM;
	return c->list.n ? 0 : switches__on(switches, cpu, time_ns, pid, tid);
}

int switches__on(struct switches *switches, int cpu, uint64_t time_ns, pid_t pid, pid_t tid)
{
	struct cpu_switches *c = of_cpu(switches, cpu);

	if (!c)
		return -ENOMEM;
	c->last_ns = time_ns;
	return add(c, time_ns, pid, tid);
}

int switches__off(struct switches *switches, int cpu, uint64_t time_ns, pid_t pid, pid_t tid)
{
	struct cpu_switches *c = of_cpu(switches, cpu);
	int err = 0;

	if (!c)
		return -ENOMEM;
	/* A thread that is being released has no tid any more: -1. */
	if (!c->list.n && pid > 0 && tid > 0 && time_ns > switches->start_ns)
		err = add(c, switches->start_ns, pid, tid);
	c->last_ns = time_ns;
	return err ? err : add(c, time_ns, 0, 0);
}

int switches__lost(struct switches *switches, int cpu, uint64_t time_ns)
{
	struct cpu_switches *c = of_cpu(switches, cpu);
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
int switches__traced(struct switches *switches, int cpu, uint64_t time_ns, uint64_t head)
{
	struct cpu_switches *c = of_cpu(switches, cpu);

	if (!c)
		return -ENOMEM;
	c->written += (head - c->head) & (switches->ring_size - 1);
	c->head = head;
	if (c->written - c->mark_written < switches->ring_size)
		return 0;
	forget(c, c->mark_ns);
	c->mark_written = c->written;
	c->mark_ns = time_ns;
	return 0;
}

bool switches__has(const struct switches *switches, pid_t pid)
{
	for (size_t i = 0; i < switches->cpus.n; i++) {
		const struct cpu_switches *c = &switches->cpus.v[i];

		for (size_t j = 0; j < c->list.n; j++)
			if (c->list.v[j].pid == pid)
				return true;
	}
	return false;
}

/* The CPU whose next one is the earliest; -1: none has any. */
static ssize_t earliest(const struct switches *switches, const size_t *next)
{
	const struct rec_switch *best = NULL;
	ssize_t at = -1;

	for (size_t i = 0; i < switches->cpus.n; i++) {
		const struct cpu_switches *c = &switches->cpus.v[i];

		if (next[i] >= c->list.n || (best && c->list.v[next[i]].time_ns >= best->time_ns))
			continue;
		best = &c->list.v[next[i]];
		at = (ssize_t)i;
	}
	return at;
}

int switches__add_to(const struct switches *switches, struct recording *rec)
{
	size_t *next = calloc(switches->cpus.n + 1, sizeof(*next));
	ssize_t i;
	int err = next ? 0 : -ENOMEM;

	while (!err && (i = earliest(switches, next)) >= 0)
		err = recording__add_switch(rec, &switches->cpus.v[i].list.v[next[i]++]);
	free(next);
	return err;
}
