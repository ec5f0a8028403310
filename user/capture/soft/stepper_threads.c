// SPDX-License-Identifier: MIT
/* The threads of the target, from seizing them to letting them go. */
#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>

#include "capture/soft/stepped.h"
#include "capture/soft/stepper_internal.h"
#include "target/process.h"

/* clone: new threads are stepped too; exec: the mappings are new. Never EXITKILL. */
#define SEIZE_OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

struct stepped *stepper__find_thread(struct stepper *s, pid_t tid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->threads[i].tid == tid && s->threads[i].attached)
			return &s->threads[i];
	return NULL;
}

struct stepped *stepper__add_thread(struct stepper *s, pid_t tid)
{
	struct stepped *t;

	if (s->n == SOFT_MAX_THREADS) {
		s->shared->lost_threads++;
		return NULL;
	}
	t = &s->threads[s->n];
	stepped__init(t, tid, s->shared, (uint32_t)s->n, &s->config->stream, s->truth);
	process__thread_name(s->config->pid, tid, t->out->comm);
	t->attached = true;
	t->waiting = s->config->from_exec || s->config->n_starts;
	s->n++;
	s->shared->n_threads = (uint32_t)s->n;
	s->live++;
	return t;
}

void stepper__seen(struct stepper *s, struct stepped *t)
{
	if (t->unseen)
		s->shared->unseen--;
	t->unseen = false;
}

void stepper__remove_thread(struct stepper *s, struct stepped *t)
{
	stepper__seen(s, t);
	t->attached = false;
	t->stopped = false;
	s->live--;
}

static void seize_thread(struct stepper *s, pid_t tid)
{
	struct stepped *t = stepper__add_thread(s, tid);

	if (!t) {
		ptrace(PTRACE_DETACH, tid, 0, 0);
	} else if (!s->config->from_exec) {
		t->unseen = true;
		s->shared->unseen++;
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	}
}

/* New threads may start while we look: until a whole pass finds none. */
int stepper__seize_all(struct stepper *s)
{
	bool found = true;

	while (found) {
		pid_t *tids;
		size_t n;
		int err = process__threads(s->config->pid, &tids, &n);

		if (err)
			return s->n ? 0 : err;
		found = false;
		for (size_t i = 0; i < n && !err; i++) {
			if (stepper__find_thread(s, tids[i]))
				continue;
			if (ptrace(PTRACE_SEIZE, tids[i], 0, SEIZE_OPTIONS)) {
				err = errno == ESRCH ? 0 : -errno;
				continue;
			}
			found = true;
			seize_thread(s, tids[i]);
		}
		free(tids);
		if (err)
			return err;
		if (s->shared->lost_threads)
			return 0;
	}
	return s->n ? 0 : -ESRCH;
}
