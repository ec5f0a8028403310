// SPDX-License-Identifier: MIT
/* Which threads there are: at the start, and later. */
#include "capture/perf/followed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/recording/process_note.h"
#include "target/process.h"
#include "util/log.h"

typedef VEC(struct followed_thread) thread_vec;

static int add_all(thread_vec *vec, pid_t pid, bool main_only)
{
	pid_t *tids;
	size_t n;
	int err = process__threads(pid, &tids, &n);

	if (err)
		return err == -ESRCH ? 0 : err;
	for (size_t i = 0; i < n && !err; i++) {
		struct followed_thread *thread;

		if (main_only && tids[i] != pid)
			continue;
		thread = VEC_PUSH(vec);
		if (thread)
			*thread = (struct followed_thread){.pid = pid, .tid = tids[i]};
		else
			err = -ENOMEM;
	}
	free(tids);
	return err;
}

int followed__list(const struct followed *f, bool main_only, struct followed_thread **threads,
		   size_t *n)
{
	thread_vec vec = {0};
	int err = 0;

	for (size_t i = 0; i < f->pids.n && !err; i++)
		err = add_all(&vec, f->pids.v[i], main_only);
	if (!err && !vec.n)
		err = -ESRCH;
	if (err)
		VEC_FINI(&vec);
	*threads = vec.v;
	*n = vec.n;
	return err;
}

/* Where memory ran out it is counted as little as it is recorded. */
void followed__leave_out(struct followed *f, pid_t tid)
{
	(void)pid_set__add(&f->left_out, tid);
}

int followed__has_thread(struct followed *f, pid_t tid)
{
	pid_set__remove(&f->left_out, tid);
	return pid_set__add(&f->tids, tid);
}

int followed__note_thread(struct followed *f, pid_t pid, pid_t tid, uint64_t time_ns)
{
	int err = process_note__thread(&f->pending, pid, tid, time_ns);

	return err || tid != pid ? err : process_note__maps(&f->pending, pid, time_ns);
}

bool followed__knows(const struct followed *f, pid_t pid)
{
	for (size_t i = 0; i < f->pending.threads.n; i++)
		if (f->pending.threads.v[i].pid == pid)
			return true;
	return false;
}

int followed__note_process(struct followed *f, pid_t pid, uint64_t time_ns)
{
	pid_t *tids;
	size_t n;
	int err = process__threads(pid, &tids, &n);

	if (err)
		return err == -ESRCH ? 0 : err;
	for (size_t i = 0; i < n && !err; i++)
		err = process_note__thread(&f->pending, pid, tids[i], time_ns);
	free(tids);
	if (!err)
		err = process_note__maps(&f->pending, pid, time_ns);
	return err == -ESRCH ? 0 : err;
}

static int note_cgroup(struct followed *f, const struct cgroup *cgroup, uint64_t time_ns)
{
	pid_t *pids;
	size_t n;
	int err = cgroup__processes(cgroup, &pids, &n);

	if (err)
		return err;
	for (size_t i = 0; i < n && !err; i++)
		err = followed__note_process(f, pids[i], time_ns);
	free(pids);
	return err;
}

int followed__note(struct followed *f, const struct source_config *config, uint64_t time_ns)
{
	int err = 0;

	if (config->cgroup)
		return note_cgroup(f, config->cgroup, time_ns);
	/* Before its execve it is one of ours, and nothing of that is recorded. */
	for (size_t i = 0; i < f->pids.n && !err && !config->from_exec; i++) {
		err = process_note__maps(&f->pending, f->pids.v[i], time_ns);
		if (err == -ESRCH && f->pids.n > 1)
			err = 0;
	}
	return err;
}

static void begin(struct followed *f, struct source *source, const struct followed_ops *ops,
		  const struct followed_thread *thread)
{
	int err = 0;

	if (pid_set__has(&f->tids, thread->tid))
		return;
	if (f->sideband.children && thread->tid == thread->pid)
		err = followed__add_process(f, thread->pid);
	if (!err)
		err = ops->began(source, thread->pid, thread->tid);
	if (err && err != -ESRCH)
		log__warn("thread %d is not recorded: %s", thread->tid, strerror(-err));
}

/* What a thread begins before its own events are open is told by nobody: its process is asked. */
static void begin_rest(struct followed *f, struct source *source, const struct followed_ops *ops)
{
	struct followed_thread *threads;
	size_t n;

	if (followed__list(f, false, &threads, &n))
		return;
	for (size_t i = 0; i < n; i++)
		begin(f, source, ops, &threads[i]);
	free(threads);
}

void followed__threads(struct followed *f, struct source *source, const struct followed_ops *ops)
{
	for (size_t i = 0; i < f->sideband.ended.n; i++) {
		ops->ended(source, f->sideband.ended.v[i]);
		pid_set__remove(&f->tids, f->sideband.ended.v[i]);
		f->n_left_out += pid_set__has(&f->left_out, f->sideband.ended.v[i]);
		pid_set__remove(&f->left_out, f->sideband.ended.v[i]);
	}
	for (size_t i = 0; i < f->sideband.started.n; i++)
		begin(f, source, ops,
		      &(struct followed_thread){.pid = f->sideband.started.v[i].pid,
						.tid = f->sideband.started.v[i].tid});
	if (f->sideband.started.n)
		begin_rest(f, source, ops);
	f->sideband.started.n = f->sideband.ended.n = 0;
}

int followed__processes(struct followed *f)
{
	int err = 0;

	for (size_t i = 0; i < f->sideband.started.n && !err; i++) {
		const struct rec_thread *t = &f->sideband.started.v[i];

		err = t->tid == t->pid ? followed__add_process(f, t->pid) : 0;
		if (err == -ESRCH)
			err = 0;
	}
	f->sideband.started.n = f->sideband.ended.n = 0;
	return err;
}

void followed__note_error(struct followed *f, int err)
{
	if (err && !f->n_errors++)
		log__warn("what the kernel says of threads and mappings cannot be kept: %s",
			  strerror(-err));
}
