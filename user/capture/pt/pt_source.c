// SPDX-License-Identifier: MIT
/* The pt source: Intel PT through perf, a ring a thread, or a ring a CPU. */
#include "capture/pt/pt_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "capture/pt/explain.h"
#include "capture/code/kernel_access.h"
#include "capture/perf/budget.h"
#include "capture/pt/pt_probe.h"
#include "capture/recording/process_note.h"
#include "target/process.h"
#include "util/log.h"

#define AUX_MIN (4u << 10)
#define AUX_MAX (1u << 30)

static int pt__probe(void)
{
	struct pt_pmu pmu;
	int err;

	if (pt_pmu__read(&pmu)) {
		pt_explain__no_pmu();
		return -ENODEV;
	}
	err = pt_probe__open(&pmu, false);
	if (err)
		pt_explain__open(err, 0);
	return err;
}

static size_t aux_size(uint64_t wanted)
{
	size_t size = AUX_MIN;

	while (size < wanted && size < AUX_MAX)
		size <<= 1;
	return size;
}

/* What would make a trace of the kernel useless, or impossible, is known before the target is
 * touched. */
static int check_kernel(const struct source *s)
{
	int err = kernel_access__refuse(true);

	if (err)
		return err;
	err = pt_probe__open(&s->pmu, true);
	if (err)
		pt_explain__open_kernel(err);
	return err == -EOPNOTSUPP ? -ENODEV : err;
}

/* One ring is many threads', and each is in its own region or in none. */
static int check_regions(const struct source_config *config)
{
	if (!config->n_starts || !config->cgroup)
		return 0;
	log__error("-start and -stop: Intel PT records a cgroup by CPU, not by thread");
	log__hint("choose its processes, with -pid or -name and -multi-thread; or -source sample");
	return -EINVAL;
}

static int open_all(struct source *s)
{
	int err;

	if (pt_pmu__read(&s->pmu)) {
		pt_explain__no_pmu();
		return -ENODEV;
	}
	err = check_regions(&s->config);
	if (!err && s->config.kernel)
		err = check_kernel(s);
	if (err)
		return err;
	err = followed__open(&s->followed, &s->config);
	if (err) {
		pt_explain__open(err, 0);
		return err;
	}
	s->ring_config = (struct pt_ring_config){
		.pmu_type = s->pmu.type,
		.aux_size = aux_size(s->config.snapshot_size),
		.probes = s->config.probes,
		.n_probes = s->config.n_probes,
		.kernel = s->config.kernel,
		.kernel_only = s->config.kernel_only,
		.from_exec = s->config.from_exec,
		.start_paused = s->config.n_starts,
		.spool_dir = s->config.spool_dir,
		.by_cpu = s->config.cgroup != NULL,
	};
	s->followed.sideband.log.ring_size = s->ring_config.aux_size;
	err = pt_timing__config(&s->config.timing, &s->pmu, &s->ring_config.pt_config);
	return err ? err : pt_source__open_rings(s);
}

static void pt__close(struct source *s);

static struct source *pt__open(const struct source_config *config)
{
	struct source *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return NULL;
	s->config = *config;
	s->followed.epoll_fd = -1;
	err = open_all(s);
	if (!err)
		return s;
	pt__close(s);
	errno = -err;
	return NULL;
}

/* One ring's event takes the gate for all: with tracefs they share one call. */
static int pt__probe_event(const struct source *s, size_t i)
{
	return s->rings.n ? s->rings.v[0].probes.v[i] : -1;
}

static int pt__start(struct source *s)
{
	int err = perf_clock__now(&s->first);

	s->followed.sideband.log.start_ns = s->first.perf_ns;
	if (!err)
		err = pt_source__note_initial(s);
	for (size_t i = 0; i < s->rings.n && !err; i++)
		err = pt_ring__enable(&s->rings.v[i], &s->ring_config);
	if (err)
		pt_explain__open(err, s->ring_config.aux_size);
	else
		log__debug("pt: config %#llx, frozen %s",
			   (unsigned long long)s->ring_config.pt_config,
			   pt_freeze__name(s->ring_config.freeze));
	return err;
}

static int pt__fd(const struct source *s)
{
	return s->followed.epoll_fd;
}

static struct pt_ring *find_thread(struct source *s, pid_t tid)
{
	for (size_t i = 0; i < s->rings.n; i++)
		if (s->rings.v[i].place.pid == tid && !s->rings.v[i].ended)
			return &s->rings.v[i];
	return NULL;
}

/*
 * Where the memory is full, those that ended long ago make room for new ones; but for the first,
 * whose event has the gate.
 */
static bool make_room(struct source *s, pid_t tid)
{
	if (budget__allows(s->config.max_memory, s->rings.n + 1, s->ring_config.aux_size))
		return true;
	for (size_t i = 1; i < s->rings.n; i++) {
		if (!s->rings.v[i].ended)
			continue;
		if (s->config.spool_dir && pt_source__keep_spool(s, &s->rings.v[i]))
			continue;
		pt_ring__close(&s->rings.v[i]);
		VEC_REMOVE(&s->rings, i);
		return true;
	}
	followed__leave_out(&s->followed, tid);
	return false;
}

/* A thread that began after the start: some microseconds of it are missing. */
static int on_thread_begin(struct source *s, pid_t pid, pid_t tid)
{
	struct clock_point now;
	int err;

	if ((!s->config.multi_thread && tid != pid) || s->frozen || !make_room(s, tid))
		return 0;
	/* Its mappings are those from before anything is recorded. */
	err = perf_clock__now(&now);
	if (!err)
		err = pt_source__add_thread(s, pid, tid);
	if (!err)
		err = pt_ring__enable(&s->rings.v[s->rings.n - 1], &s->ring_config);
	return err ? err : followed__note_thread(&s->followed, pid, tid, now.perf_ns);
}

static void on_thread_end(struct source *s, pid_t tid)
{
	struct pt_ring *ring = find_thread(s, tid);

	if (!ring)
		return;
	ring->ended = true;
	/* It would wake everybody for ever. */
	if (s->config.spool_dir)
		epoll_ctl(s->followed.epoll_fd, EPOLL_CTL_DEL, ring->pt, NULL);
}

/* The kernel marks what it writes after it had no room (PERF_AUX_FLAG_TRUNCATED). */
static void say_full(struct source *s)
{
	const struct recording *pending = &s->followed.pending;
	bool is_full = false;

	for (size_t i = 0; i < pending->losses.n && !s->said_full && s->config.spool_dir; i++)
		is_full |= pending->losses.v[i].aux_flags != 0;
	if (!is_full)
		return;
	s->said_full = true;
	log__warn("the disk does not keep up: a buffer was full, and what ran then is lost");
	log__hint("a larger -snapshot-size holds more until the disk has taken it");
}

/* Of a cgroup a CPU's ring has the traces of many. */
static bool holds(const struct source *s, pid_t pid)
{
	for (size_t i = 0; i < s->rings.n; i++)
		if (s->rings.v[i].pid == pid)
			return true;
	return switch_log__has(&s->followed.sideband.log, pid);
}

static int drain(struct source *s)
{
	static const struct followed_ops ops = {.ended = on_thread_end, .began = on_thread_begin};
	int err = 0;

	followed__forget_ended(&s->followed);
	for (size_t i = 0; i < s->rings.n && !err; i++) {
		if (s->config.spool_dir)
			pt_ring__drain(&s->rings.v[i], !s->frozen && !s->rings.v[i].ended);
		err = sideband__drain(&s->followed.sideband, &s->rings.v[i].ring);
		if (!err)
			err = sideband__drain(&s->followed.sideband, &s->rings.v[i].sideband.ring);
	}
	if (err)
		return err;
	followed__threads(&s->followed, s, &ops);
	err = pt_source__note_joined(s);
	if (!err)
		err = sideband__tidy(&s->followed.sideband, holds, s);
	say_full(s);
	return err;
}

static enum source_state pt__state(struct source *s)
{
	if (s->frozen)
		return SOURCE_FROZEN;
	followed__note_error(&s->followed, drain(s));
	return followed__is_alive(&s->followed, &s->config) ? SOURCE_RUNNING : SOURCE_EXITED;
}

static int pt__freeze(struct source *s)
{
	int err;

	if (s->frozen)
		return 0;
	for (size_t i = 0; i < s->rings.n; i++)
		pt_ring__disable(&s->rings.v[i]);
	s->frozen = true;
	err = drain(s);
	if (err)
		log__error("cannot read what the kernel says of the process: %s", strerror(-err));
	return err;
}

static const struct pid_set *pt__pids(const struct source *s)
{
	return s->config.cgroup ? NULL : &s->followed.pids;
}

static const char *pt__freeze_name(const struct source *s)
{
	return pt_freeze__name(s->ring_config.freeze);
}

static void pt__close(struct source *s)
{
	if (!s)
		return;
	pt_source__close_rings(s);
	VEC_FINI(&s->rings);
	for (size_t i = 0; i < s->spools.n; i++)
		spool__close(&s->spools.v[i].spool);
	VEC_FINI(&s->spools);
	pt_source__remove_probes(s);
	followed__close(&s->followed);
	free(s);
}

const struct source_ops source_pt = {
	.name = "pt",
	.about = "Intel Processor Trace: the target runs at full speed",
	.probe = pt__probe,
	.open = pt__open,
	.probe_event = pt__probe_event,
	.start = pt__start,
	.fd = pt__fd,
	.state = pt__state,
	.freeze = pt__freeze,
	.read = pt_source__read,
	.pids = pt__pids,
	.freeze_name = pt__freeze_name,
	.close = pt__close,
};
