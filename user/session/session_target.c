// SPDX-License-Identifier: MIT
/* Whether the processes that have the probe are still those that the user means. */
#include <stdlib.h>
#include <string.h>

#include "session/probe/first_probe.h"
#include "session/session_internal.h"
#include "util/log.h"

static bool maps_probe(const struct session *s, const struct process *process)
{
	const struct probe *probe = &s->probes.all.v[0];

	for (size_t i = 0; i < process->maps.n; i++)
		if (process->maps.v[i].ino == probe->file.ino &&
		    process->maps.v[i].maj == probe->file.maj &&
		    process->maps.v[i].min == probe->file.min)
			return true;
	return false;
}

/* Whether it runs what the probe is in, and is recorded. */
static bool has_probe(const struct session *s, pid_t pid)
{
	struct process process;
	bool has;

	if (!s->cgroup && !pid_set__has(&s->pids, pid))
		return false;
	if (process__open(&process, pid))
		return false;
	has = maps_probe(s, &process);
	process__close(&process);
	return has;
}

static bool find_witness(struct session *s, const struct target *target)
{
	bool found = false;
	pid_t *pids;
	size_t n;

	if (target__processes(target, &pids, &n))
		return false;
	for (size_t i = 0; i < n && !found; i++) {
		found = has_probe(s, pids[i]);
		if (found)
			s->witness = pids[i];
	}
	free(pids);
	return found;
}

/* Whether somebody has the function, though not in the file that has the probe. */
static bool has_function(const struct session *s, const struct target *target)
{
	struct process process;
	struct probe probe;

	if (first_probe__find(target, session__symbol(s), &process, &probe))
		return false;
	process__close(&process);
	return true;
}

static bool is_replaced(struct session *s)
{
	struct target target;
	bool replaced;

	if (target__choose(&target, &s->options->target)) {
		target__close(&target);
		return false;
	}
	replaced = !find_witness(s, &target) && has_function(s, &target);
	target__close(&target);
	return replaced;
}

bool session__is_replaced(struct session *s)
{
	enum log_level level = log__level();
	bool replaced;

	if (!s->probes.all.n || !s->start->target || !target_options__name(&s->options->target) ||
	    process__alive(s->witness))
		return false;
	log__set_level(LOG_SILENT);
	replaced = is_replaced(s);
	log__set_level(level);
	return replaced;
}
