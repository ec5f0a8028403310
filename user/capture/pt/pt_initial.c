// SPDX-License-Identifier: MIT
/* What /proc says of the processes that are recorded; the sideband tells of what comes later. */
#include "capture/pt/pt_source.h"

#include <errno.h>
#include <stdlib.h>

#include "capture/recording/process_note.h"
#include "target/process.h"

/* The threads that have a ring, and their process's mappings. */
static int note_process(struct source *s)
{
	int err = 0;

	for (size_t i = 0; i < s->rings.n && !err; i++)
		err = process_note__thread(&s->followed.pending, s->config.pid,
					   s->rings.v[i].place.pid, s->first.perf_ns);
	/* Before its execve they are ours, and nothing of that is recorded. */
	return err || s->config.from_exec
		       ? err
		       : process_note__maps(&s->followed.pending, s->config.pid, s->first.perf_ns);
}

/* One that ends meanwhile is no error. */
static int note_all_of(struct source *s, pid_t pid, uint64_t time_ns)
{
	pid_t *tids;
	size_t n;
	int err = process__threads(pid, &tids, &n);

	if (err)
		return err == -ESRCH ? 0 : err;
	for (size_t i = 0; i < n && !err; i++)
		err = process_note__thread(&s->followed.pending, pid, tids[i], time_ns);
	free(tids);
	if (!err)
		err = process_note__maps(&s->followed.pending, pid, time_ns);
	return err == -ESRCH ? 0 : err;
}

static int note_cgroup(struct source *s)
{
	pid_t *pids;
	size_t n;
	int err = cgroup__processes(s->config.cgroup, &pids, &n);

	if (err)
		return err;
	for (size_t i = 0; i < n && !err; i++)
		err = note_all_of(s, pids[i], s->first.perf_ns);
	free(pids);
	return err;
}

int pt_source__note_initial(struct source *s)
{
	return s->config.cgroup ? note_cgroup(s) : note_process(s);
}

static bool is_process_known(const struct recording *rec, pid_t pid)
{
	for (size_t i = 0; i < rec->threads.n; i++)
		if (rec->threads.v[i].pid == pid)
			return true;
	return false;
}

int pt_source__note_joined(struct source *s)
{
	int err = 0;

	for (size_t i = 0; i < s->followed.sideband.joined.n && !err; i++) {
		const struct rec_thread *t = &s->followed.sideband.joined.v[i];

		if (!is_process_known(&s->followed.pending, t->pid))
			err = note_all_of(s, t->pid, t->start_ns);
		else if (!recording__find_thread(&s->followed.pending, t->pid, t->tid))
			err = process_note__thread(&s->followed.pending, t->pid, t->tid,
						   t->start_ns);
	}
	s->followed.sideband.joined.n = 0;
	return err;
}
