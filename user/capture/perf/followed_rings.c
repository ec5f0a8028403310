// SPDX-License-Identifier: MIT
/* A ring for each thread, or each CPU, of those that are followed. */
#include "capture/perf/followed.h"

#include <errno.h>
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

int followed__add_cpus(struct followed *f, struct source *s, int cgroup_fd,
		       followed_ring_fn open_ring)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	int err = 0;

	for (int cpu = 0; cpu < n && !err; cpu++) {
		struct event_place place = event_place__of_cgroup(cgroup_fd, cpu);

		err = add_ring(f, s, &place, 0, open_ring);
		if (err == -ENODEV)
			err = 0;
	}
	return err;
}
