// SPDX-License-Identifier: MIT
#include "session/probe/first_probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "util/log.h"
#include "util/vec.h"

/* Workers of one program have the same files, and what one of them lacks, all do. */
typedef VEC(uint64_t) seen_vec;

/* Of the code that a process has mapped (FNV-1a). */
static uint64_t code_hash(const struct process *process)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < process->maps.n; i++) {
		const struct mapping *m = &process->maps.v[i];

		if (m->prot & PROT_EXEC && m->ino)
			hash = (hash ^ m->ino ^ (uint64_t)m->maj << 40 ^ (uint64_t)m->min << 48) *
			       0x100000001b3;
	}
	return hash;
}

/* Whether its files were looked through already; they count as that from now on. */
static bool is_seen(seen_vec *seen, const struct process *process)
{
	uint64_t hash = code_hash(process), *slot;

	for (size_t i = 0; i < seen->n; i++)
		if (seen->v[i] == hash)
			return true;
	slot = VEC_PUSH(seen);
	if (slot)
		*slot = hash;
	return false;
}

/* Whether this is the one. What it lacks is no error: the next one may have it. */
static bool try_process(pid_t pid, const char *symbol, seen_vec *seen, struct process *process)
{
	enum log_level level = log__level();
	struct probe probe;
	bool found;

	log__set_level(LOG_SILENT);
	found = !process__open(process, pid);
	if (found && symbol &&
	    (is_seen(seen, process) || probe__find(&probe, process, NULL, symbol))) {
		process__close(process);
		found = false;
	}
	log__set_level(level);
	return found;
}

/* Where all of them run the same program, why it is not found there is the answer. */
static int explain(const struct target *target, const char *symbol, pid_t first, size_t programs)
{
	char where[PATH_MAX + 32] = "those";
	struct process process;
	struct probe probe;

	if (programs == 1 && !process__open(&process, first)) {
		int err = probe__find(&probe, &process, NULL, symbol);

		process__close(&process);
		if (err)
			return err;
	}
	if (target__is_cgroup(target))
		snprintf(where, sizeof(where), "the cgroup %s", target->cgroup.path);
	if (!symbol || !programs) {
		log__error("no process of %s can be looked at", where);
		log__hint("run as root; CAP_SYS_PTRACE will do too");
		return -ESRCH;
	}
	log__error("no process of %s has a function '%s'", where, symbol);
	log__hint("'mtbpf list -pid PID' shows a process's; lib.so:NAME is one in a library");
	return -ENOENT;
}

int first_probe__find(const struct target *target, const char *symbol, struct process *process,
		      struct probe *probe)
{
	seen_vec seen = {0};
	bool found = false;
	pid_t *pids;
	size_t n;
	int err = target__processes(target, &pids, &n);

	if (err)
		return err;
	for (size_t i = 0; i < n && !found; i++)
		found = try_process(pids[i], symbol, &seen, process);
	if (!found)
		err = explain(target, symbol, n ? pids[0] : 0, seen.n);
	else if (symbol)
		/* Once more, for what it has to say of the probe. */
		err = probe__find(probe, process, NULL, symbol);
	if (found && err)
		process__close(process);
	VEC_FINI(&seen);
	free(pids);
	return err;
}

int first_probe__find_all(const struct target *target, const struct selectors *selectors,
			  struct process *process, struct probes *probes)
{
	const char *symbol = selectors->names.n ? selectors->names.v[0] : NULL;
	struct probe first;
	int err = first_probe__find(target, symbol, process, &first);

	if (err || !symbol)
		return err;
	err = probes__add(probes, &first);
	if (!err)
		err = probes__find(probes, selectors, process, NULL);
	if (err)
		process__close(process);
	return err;
}
