// SPDX-License-Identifier: MIT
/* Which rings the pt source opens, and how they will freeze. */
#include "capture/pt/pt_source.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/perf/budget.h"
#include "capture/pt/explain.h"
#include "capture/perf/many_rings.h"
#include "capture/perf/memlock.h"
#include "target/process.h"
#include "util/log.h"

static int open_ring(struct source *s, const struct event_place *place, pid_t pid)
{
	struct pt_ring *ring = VEC_PUSH(&s->rings);
	int err = ring ? pt_ring__open(ring, place, &s->ring_config) : -ENOMEM;

	if (ring && err)
		s->rings.n--;
	if (err)
		return err;
	ring->pid = pid;
	/* It tells when it is half full. */
	err = s->config.spool_dir ? followed__watch(&s->followed, ring->pt) : 0;
	return err ? err : ring->sideband.event;
}

int pt_source__add_thread(struct source *s, pid_t pid, pid_t tid)
{
	return followed__add_thread(&s->followed, s, &(struct followed_thread){pid, tid},
				    open_ring);
}

static int add_threads(struct source *s)
{
	struct followed_thread *threads;
	size_t n;
	int err = followed__list(&s->followed, !s->config.multi_thread, &threads, &n);

	if (err)
		return err;
	err = followed__add_threads(&s->followed, s, threads, n, open_ring);
	free(threads);
	return err ? err : s->rings.n ? 0 : -ESRCH;
}

static int add_cpus(struct source *s)
{
	struct event_place place = event_place__of_cgroup(s->config.cgroup->fd, 0);
	cpu_set_t cpus;
	int err;

	followed__cpus(&s->followed, NULL, &cpus);
	err = followed__add_cpus(&s->followed, s, &place, &cpus, open_ring);

	return err ? err : s->rings.n ? 0 : -ENODEV;
}

void pt_source__close_rings(struct source *s)
{
	for (size_t i = 0; i < s->rings.n; i++)
		pt_ring__close(&s->rings.v[i]);
	s->rings.n = s->followed.tids.n = 0;
}

static bool is_unsupported(int err)
{
	return err == -EINVAL || err == -EOPNOTSUPP;
}

/* Chosen by trying, best first: version numbers say little (6.12.117 has AUX pause too). */
static int try_methods(struct source *s)
{
	int err = -EINVAL;

	for (enum pt_freeze freeze = PT_FREEZE_PAUSE;
	     is_unsupported(err) && freeze <= PT_FREEZE_DISABLE; freeze++) {
		if (s->config.freeze_method && (int)freeze != s->config.freeze_method - 1)
			continue;
		if (s->config.immediate_stop && freeze == PT_FREEZE_DISABLE)
			break;
		/* What stops it for good is no way to stop and start it. */
		if (s->ring_config.start_paused && freeze != PT_FREEZE_PAUSE)
			break;
		pt_source__close_rings(s);
		s->ring_config.freeze = freeze;
		err = s->config.cgroup ? add_cpus(s) : add_threads(s);
	}
	return err;
}

static int count_rings(const struct source *s, size_t *n)
{
	struct followed_thread *threads;
	int err;

	if (s->config.cgroup) {
		*n = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
		return 0;
	}
	err = followed__list(&s->followed, !s->config.multi_thread, &threads, n);
	free(threads);
	return err;
}

/* Said before anything is opened: the kernel itself only says EPERM. */
static int check_memory(const struct source *s)
{
	bool by_cpu = s->config.cgroup != NULL;
	size_t aux = s->ring_config.aux_size, n;
	struct memlock_limits limits;
	int err = count_rings(s, &n);

	if (err) {
		pt_explain__open(err, aux);
		return err;
	}
	err = budget__check(s->config.max_memory, n, aux, by_cpu);
	if (err)
		return err;
	memlock__read(&limits);
	err = memlock__check(&limits, n, pt_ring__locked_size(aux, by_cpu), aux);
	return err ? err
		   : many_rings__allow(n, PT_RING_FDS - 1 + s->config.n_probes, PT_RING_MAPPINGS);
}

static bool has_several_rings(const struct source_config *config)
{
	return config->multi_thread || config->cgroup || config->children ||
	       (config->pids && config->pids->n > 1);
}

static int add_tracefs(struct source *s, size_t i)
{
	struct tracefs_probe **probe = VEC_PUSH(&s->tracefs);
	uint32_t *id = VEC_PUSH(&s->tracepoints);
	int err;

	if (!probe || !id) {
		s->tracefs.n -= probe != NULL;
		return -ENOMEM;
	}
	err = tracefs_probe__create(probe, &s->config.probes[i], i);
	if (err)
		s->tracefs.n--;
	else
		*id = tracefs_probe__id(*probe);
	return err;
}

/* With the uprobe PMU's events each hit would run the BPF program once a ring. */
static int open_tracefs(struct source *s)
{
	int err = 0;

	if (!has_several_rings(&s->config))
		return 0;
	for (size_t i = 0; i < s->config.n_probes && !err; i++)
		err = add_tracefs(s, i);
	s->ring_config.tracepoints = s->tracepoints.v;
	return err;
}

void pt_source__remove_probes(struct source *s)
{
	for (size_t i = 0; i < s->tracefs.n; i++)
		tracefs_probe__remove(s->tracefs.v[i]);
	VEC_FINI(&s->tracefs);
	VEC_FINI(&s->tracepoints);
}

int pt_source__open_rings(struct source *s)
{
	int err = check_memory(s);

	if (!err)
		err = open_tracefs(s);
	if (err)
		return err;
	err = try_methods(s);
	if (is_unsupported(err) && s->ring_config.start_paused) {
		log__error("-start and -stop: this kernel cannot resume Intel PT at a probe");
		log__hint("needs Linux 6.13 or later; -source sample and soft can on any");
	} else if (is_unsupported(err) && s->config.immediate_stop) {
		log__error("-immediate-stop: this kernel cannot freeze Intel PT at a probe");
		log__hint(
			"without it the trace is frozen from user space, some 50 us after the hit");
	} else if (is_unsupported(err) && s->config.n_probes > 1 && s->config.freeze_method) {
		log__error("this way of freezing takes one probe, not %zu", s->config.n_probes);
		log__hint("-freeze pause, where the kernel has it, or disable takes any number");
	} else if (err == -ENOENT && s->config.cgroup) {
		pt_explain__no_controller(s->config.cgroup->path);
	} else if (err) {
		pt_explain__open(err, s->ring_config.aux_size);
	}
	return err;
}
