// SPDX-License-Identifier: MIT
/* Finds out whether the target's processes have been replaced by others. */
#include <errno.h>
#include <stdlib.h>

#include "session/session.h"
#include "session/session_internal.h"
#include "util/clock.h"
#include "util/log.h"

/* A check may take at most 1/LOOK_SHARE of our time. */
#define LOOK_SHARE 20

static bool is_of(const struct probe *probe, const struct mapping *m)
{
	return !probe__in_kernel(probe) && m->ino == probe->file.ino && m->maj == probe->file.maj &&
	       m->min == probe->file.min;
}

static bool are_in_memory(const struct probes *probes, const struct mappings *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		for (size_t p = 0; p < probes->all.n && mapping__is_memory(&maps->v[i]); p++)
			if (is_of(&probes->all.v[p], &maps->v[i]))
				return true;
	return false;
}

static bool are_copied_of(const struct session *s, pid_t pid)
{
	_cleanup_mappings_ struct mappings maps = {0};

	/*
	 * Another process has exited, so its code cannot be copied any more. For the session's own
	 * process, assume that code is copied.
	 */
	if (mappings__read(&maps, pid))
		return pid == session__pid(s);
	return are_in_memory(&s->probes, &maps) || are_in_memory(&s->also, &maps) ||
	       are_in_memory(&s->regions.starts, &maps) || are_in_memory(&s->regions.stops, &maps);
}

bool session__probes_are_copied(const struct session *s)
{
	bool are = !s->programs.all.n && are_copied_of(s, session__pid(s));

	for (size_t i = 0; i < s->programs.all.n && !are; i++)
		are = are_copied_of(s, s->programs.all.v[i].process.pid);
	return are;
}

/* Notes which of the probes without a living process this one maps. Returns how many are left. */
static size_t note_mapped(struct session *s, pid_t pid)
{
	struct process process;
	bool is_open = !process__open(&process, pid);
	size_t left = 0;

	for (size_t i = 0; i < s->probes.all.n; i++) {
		const struct probe *probe = &s->probes.all.v[i];
		/* Every process can make a system call. */
		bool maps = probe__in_kernel(probe);

		for (size_t m = 0; is_open && m < process.maps.n && !maps; m++)
			maps = is_of(probe, &process.maps.v[m]);
		if (is_open && maps && !process__alive(s->mapped_by[i]))
			s->mapped_by[i] = pid;
		left += !process__alive(s->mapped_by[i]);
	}
	if (is_open)
		process__close(&process);
	return left;
}

/* The number of probes whose file no process of the cgroup maps. */
static size_t count_unmapped(struct session *s, const struct target *target)
{
	size_t n, left = s->probes.all.n;
	pid_t *pids;

	if (target__processes(target, &pids, &n))
		return 0;
	for (size_t i = 0; i < n && left; i++)
		left = note_mapped(s, pids[i]);
	free(pids);
	return left;
}

static bool has_function(const struct session *s, const struct programs *programs)
{
	for (size_t i = 0; i < s->symbols.names.n; i++)
		if (programs__have(programs, s->symbols.names.v[i]))
			return true;
	return false;
}

/* True if a process that started later has the function. */
static bool is_process_new(const struct session *s, const struct target *target)
{
	struct target fresh = {.cgroup.fd = -1};
	struct programs programs = {0};
	bool is_new = true;

	for (size_t i = 0; i < target->pids.n && is_new; i++)
		is_new = pid_set__has(&s->pids, target->pids.v[i]) ||
			 !pid_set__add(&fresh.pids, target->pids.v[i]);
	is_new = is_new && fresh.pids.n && !programs__open(&programs, &fresh) &&
		 has_function(s, &programs);
	programs__fini(&programs);
	target__close(&fresh);
	return is_new;
}

static bool look(struct session *s)
{
	LOG_SILENTLY;
	struct programs programs = {0};
	struct target target;
	bool replaced = false;

	if (target__choose(&target, &s->options->target)) {
		replaced = false;
	} else if (!target__is_cgroup(&target)) {
		replaced = is_process_new(s, &target);
	} else if (count_unmapped(s, &target) && !programs__open(&programs, &target)) {
		/* The function is in a program that did not run at the start. */
		programs__remove(&programs, &s->programs);
		replaced = has_function(s, &programs);
	}
	programs__fini(&programs);
	target__close(&target);
	return replaced;
}

/* A cheap check before look(). */
static bool has_anybody_gone(const struct session *s)
{
	for (size_t i = 0; i < s->pids.n; i++)
		if (!process__alive(s->pids.v[i]))
			return true;
	for (size_t i = 0; i < s->probes.all.n && s->cgroup; i++)
		if (!process__alive(s->mapped_by[i]))
			return true;
	return false;
}

bool session__is_replaced(struct session *s)
{
	uint64_t now = clock__now_ns();
	bool replaced;

	if (!s->probes.all.n || !s->start->target || !target_options__name(&s->options->target) ||
	    now < s->look_ns)
		return false;
	if (!s->mapped_by)
		s->mapped_by = calloc(s->probes.all.n, sizeof(*s->mapped_by));
	if (!s->mapped_by || !has_anybody_gone(s))
		return false;
	replaced = look(s);
	s->look_ns = clock__now_ns() + LOOK_SHARE * (clock__now_ns() - now);
	return replaced;
}
