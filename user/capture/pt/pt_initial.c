// SPDX-License-Identifier: MIT
/* What /proc says of the processes that are recorded; the sideband tells of what comes later. */
#include "capture/pt/pt_source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "target/process.h"

static int note_thread(struct source *s, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct rec_thread thread = {.pid = pid, .tid = tid, .start_ns = time_ns};

	process__thread_name(pid, tid, thread.comm);
	return recording__add_thread(&s->pending, &thread);
}

static int note_maps(struct source *s, pid_t pid, uint64_t time_ns)
{
	struct mappings maps;
	int err = mappings__read(&maps, pid);

	if (err)
		return err;
	for (size_t i = 0; i < maps.n && !err; i++) {
		const struct mapping *m = &maps.v[i];
		struct rec_map map = {.time_ns = time_ns,
				      .start = m->start,
				      .len = m->end - m->start,
				      .pgoff = m->pgoff,
				      .ino = m->ino,
				      .maj = m->maj,
				      .min = m->min,
				      .pid = pid,
				      .tid = pid,
				      .path = m->path};

		if (m->prot & PROT_EXEC)
			err = recording__add_map(&s->pending, &map);
	}
	mappings__fini(&maps);
	return err;
}

/* The threads that have a ring, and their process's mappings. */
static int note_process(struct source *s)
{
	int err = 0;

	for (size_t i = 0; i < s->rings.n && !err; i++)
		err = note_thread(s, s->config.pid, s->rings.v[i].place.pid, s->first.perf_ns);
	/* Before its execve they are ours, and nothing of that is recorded. */
	return err || s->config.from_exec ? err : note_maps(s, s->config.pid, s->first.perf_ns);
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
		err = note_thread(s, pid, tids[i], time_ns);
	free(tids);
	if (!err)
		err = note_maps(s, pid, time_ns);
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

	for (size_t i = 0; i < s->sideband.joined.n && !err; i++) {
		const struct rec_thread *t = &s->sideband.joined.v[i];

		if (!is_process_known(&s->pending, t->pid))
			err = note_all_of(s, t->pid, t->start_ns);
		else if (!recording__find_thread(&s->pending, t->pid, t->tid))
			err = note_thread(s, t->pid, t->tid, t->start_ns);
	}
	s->sideband.joined.n = 0;
	return err;
}
