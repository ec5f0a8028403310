// SPDX-License-Identifier: MIT
/* A ring for each thread, or each CPU, of those that are followed. */
#include "capture/perf/followed.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/perf/event_place.h"

static int add_ring(struct followed *f, struct source *s, const struct event_place *place,
		    pid_t pid, followed_ring_fn open_ring)
{
	int event = open_ring(s, place, pid);

	return event < 0 ? event : followed__watch(f, event);
}

int followed__add_thread(struct followed *f, struct source *s, const struct followed_thread *thread,
			 followed_ring_fn open_ring)
{
	struct event_place place = event_place__of_thread(thread->tid);
	int err = add_ring(f, s, &place, thread->pid, open_ring);

	return err ? err : followed__has_thread(f, thread->tid);
}

int followed__add_threads(struct followed *f, struct source *s,
			  const struct followed_thread *threads, size_t n,
			  followed_ring_fn open_ring)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		err = followed__add_thread(f, s, &threads[i], open_ring);
		if (err == -ESRCH)
			err = 0;
	}
	return err;
}

int followed__add_cpus(struct followed *f, struct source *s, const struct event_place *place,
		       const cpu_set_t *cpus, followed_ring_fn open_ring)
{
	int err = 0;

	for (int cpu = 0; cpu < CPU_SETSIZE && !err; cpu++) {
		struct event_place here = *place;

		if (!CPU_ISSET(cpu, cpus))
			continue;
		here.cpu = cpu;
		err = add_ring(f, s, &here, 0, open_ring);
		if (err == -ENODEV)
			err = 0;
	}
	return err;
}

static void add_all(cpu_set_t *cpus)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	for (int cpu = 0; cpu < n && cpu < CPU_SETSIZE; cpu++)
		CPU_SET(cpu, cpus);
}

void followed__cpus(const struct followed *f, const struct cgroup *cgroup, cpu_set_t *cpus)
{
	struct followed_thread *threads;
	cpu_set_t own;
	size_t n;

	if (cgroup && !cgroup__cpus(cgroup, cpus))
		return;
	CPU_ZERO(cpus);
	if (!f->sideband.pids || followed__list(f, false, &threads, &n)) {
		add_all(cpus);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (!sched_getaffinity(threads[i].tid, sizeof(own), &own))
			CPU_OR(cpus, cpus, &own);
	free(threads);
	if (!CPU_COUNT(cpus))
		add_all(cpus);
}
