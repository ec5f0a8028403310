// SPDX-License-Identifier: MIT
/* Whether the processes that have the probe are still those that the user means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/probe/first_probe.h"
#include "session/session_internal.h"
#include "util/log.h"

static bool is_of(const struct probe *probe, const struct mapping *m)
{
	return m->ino == probe->file.ino && m->maj == probe->file.maj && m->min == probe->file.min;
}

static bool maps_file(const struct process *process, const struct probe *probe)
{
	for (size_t i = 0; i < process->maps.n; i++)
		if (is_of(probe, &process->maps.v[i]))
			return true;
	return false;
}

static bool maps_probe(const struct session *s, const struct process *process)
{
	return maps_file(process, &s->probes.all.v[0]);
}

/* One that cannot be looked at is not said to lack it. */
static bool lacks_probes(const struct session *s, pid_t pid, char comm[PROCESS_COMM_SIZE])
{
	struct process process;
	bool has = false;

	if (process__open(&process, pid))
		return false;
	for (size_t i = 0; i < s->probes.all.n && !has; i++)
		has = maps_file(&process, &s->probes.all.v[i]);
	snprintf(comm, PROCESS_COMM_SIZE, "%s", process.comm);
	process__close(&process);
	return !has;
}

void session__warn_unprobed(const struct session *s)
{
	char comm[PROCESS_COMM_SIZE], first[PROCESS_COMM_SIZE] = "";
	size_t n = 0;
	pid_t pid = 0;

	for (size_t i = 0; i < s->pids.n; i++) {
		if (!lacks_probes(s, s->pids.v[i], comm))
			continue;
		if (!n++) {
			pid = s->pids.v[i];
			snprintf(first, sizeof(first), "%s", comm);
		}
	}
	if (n == 1)
		log__warn("process %d (%s) runs another file than the one that has %s: it cannot "
			  "hit it",
			  pid, first, s->probes.name);
	else if (n)
		log__warn("%zu of the processes, such as %d (%s), run another file than the one "
			  "that has %s: they cannot hit it",
			  n, pid, first, s->probes.name);
}

static bool are_in_memory(const struct probes *probes, const struct mappings *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		for (size_t p = 0; p < probes->all.n && mapping__is_memory(&maps->v[i]); p++)
			if (is_of(&probes->all.v[p], &maps->v[i]))
				return true;
	return false;
}

bool session__probes_are_copied(const struct session *s)
{
	struct mappings maps;
	bool are;

	if (mappings__read(&maps, session__pid(s)))
		return true;
	are = are_in_memory(&s->probes, &maps) || are_in_memory(&s->also, &maps) ||
	      are_in_memory(&s->regions.starts, &maps) || are_in_memory(&s->regions.stops, &maps);
	mappings__fini(&maps);
	return are;
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
