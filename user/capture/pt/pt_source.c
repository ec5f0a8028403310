// SPDX-License-Identifier: MIT
/* The pt source: Intel PT through perf, with one ring per thread or per CPU. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/code/kernel_copy.h"
#include "capture/code/live_code.h"
#include "capture/perf/followed.h"
#include "capture/perf/perf_clock.h"
#include "capture/perf/perf_ring.h"
#include "capture/probe/uprobe_event.h"
#include "capture/pt/pmu.h"
#include "capture/pt/pt_ring.h"
#include "capture/source.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"

static bool cpuinfo_has(const char *word)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	return !fs__read("/proc/cpuinfo", &text, &len) && strstr(text, word);
}

static void explain_no_pmu(void)
{
	if (cpuinfo_has("hypervisor"))
		log__error("no Intel PT: this is a virtual machine, and hypervisors rarely pass PT "
			   "to guests");
	else if (!cpuinfo_has("GenuineIntel"))
		log__error("no Intel PT: this is not an Intel CPU");
	else
		log__error("no Intel PT: the kernel lacks the intel_pt PMU (" PT_PMU_PATH ")");
	log__hint("use -source sample (stacks by a timer, not every call) or -source soft (every "
		  "call, but the target runs about 10,000 times slower)");
}

/* memlock__check() passed, but the user's other processes have locked memory as well. */
static void explain_memlock(size_t aux_size)
{
	struct rlimit rlimit = {0};

	getrlimit(RLIMIT_MEMLOCK, &rlimit);
	log__error(
		"cannot lock %s per thread for the trace: other processes of this user use a part "
		"of the limit (RLIMIT_MEMLOCK %s, and kernel.perf_event_mlock_kb: %ld KiB per CPU)",
		BYTES(aux_size), BYTES(rlimit.rlim_cur),
		fs__read_number("/proc/sys/kernel/perf_event_mlock_kb", -1));
	log__hint("use a smaller -snapshot-size; CAP_IPC_LOCK or a higher 'ulimit -l' lifts the "
		  "limit");
}

static void explain_open(int err, size_t aux_size)
{
	if (err == -EPERM && aux_size) {
		explain_memlock(aux_size);
	} else if (err == -EBUSY) {
		log__error("Intel PT is in use already: EBUSY");
		log__hint(
			"another mtbpf, perf or debugger traces this thread or CPU: end that one");
	} else if (err == -ENOMEM) {
		log__error("out of memory for a trace of %s per thread", BYTES(aux_size));
		log__hint("use a smaller -snapshot-size");
	} else {
		ring_limits__explain(err, "record with Intel PT");
	}
}

static void explain_no_controller(const char *path)
{
	log__error("the cgroup %s lacks the perf_event controller", path);
	log__hint("enable any controller in the parent cgroup: 'echo +cpu "
		  ">%s/../cgroup.subtree_control' (not possible if a v1 hierarchy has perf_event)",
		  path);
}

static void explain_open_kernel(int err)
{
	if (err == -EPERM || err == -EACCES) {
		log__error("cannot trace the kernel: %s", strerror(-err));
		log__hint("needs CAP_PERFMON, or kernel.perf_event_paranoid <= 1 (now %ld); or "
			  "leave out -trace-include-kernel",
			  fs__read_number("/proc/sys/kernel/perf_event_paranoid", -1));
	} else if (err == -EOPNOTSUPP) {
		log__error("cannot trace the kernel: this intel_pt PMU records user code only");
		log__hint("leave out -trace-include-kernel: time in the kernel shows as [syscall] "
			  "and [untraced]");
	} else {
		explain_open(err, 0);
	}
}

#define AUX_MIN (4u << 10)
#define AUX_MAX (1u << 30)

struct ended_spool {
	pid_t pid, tid;
	struct spool spool;
};

struct source {
	struct followed followed;
	struct source_config config;
	struct pt_pmu pmu;
	struct pt_ring_config ring_config;
	/* Several rings: the probes that all their events share, and their ids. */
	VEC(struct tracefs_probe *) tracefs;
	VEC(uint32_t) tracepoints;
	/* The spools of rings that were closed when their threads ended. */
	VEC(struct ended_spool) spools;
	struct clock_point first;
	bool said_full; /* a ring that is drained was not drained in time */
};

static struct pt_ring *ring_at(const struct source *s, size_t i)
{
	return (struct pt_ring *)s->followed.rings.v[i];
}

/* Notes the threads that were moved into the cgroup. 0 or -errno. */
static int note_joined(struct source *s)
{
	int err = 0;

	VEC_EACH_WHILE(&s->followed.sideband.joined, t, !err) {
		if (!followed__knows(&s->followed, t->pid))
			err = followed__note_process(&s->followed, t->pid, t->start_ns);
		else if (!recording__find_thread(&s->followed.pending, t->pid, t->tid))
			err = process_note__thread(&s->followed.pending, t->pid, t->tid,
						   t->start_ns);
	}
	s->followed.sideband.joined.n = 0;
	return err;
}

/* Opening rings, and choosing how they freeze. */

static const struct followed_ops followed_ops;

static int open_ring(struct source *s, struct followed_ring *of, const struct event_place *place)
{
	struct pt_ring *ring = (struct pt_ring *)of;
	int err = pt_ring__open(ring, place, &s->ring_config);

	/* The event wakes when the buffer is half full. */
	if (s->config.spool_dir)
		of->wakes = ring->pt;
	return err;
}

static void close_ring(struct followed_ring *ring)
{
	pt_ring__close((struct pt_ring *)ring);
}

static void disable_ring(struct followed_ring *ring)
{
	pt_ring__disable((struct pt_ring *)ring);
}

static int add_cpus(struct source *s)
{
	struct event_place place = event_place__of_cgroup(s->config.cgroup->fd, 0);
	cpu_set_t cpus;
	int err;

	followed__cpus(&s->followed, NULL, &cpus);
	err = followed__add_cpus(&s->followed, &place, &cpus);

	return err ? err : s->followed.rings.n ? 0 : -ENODEV;
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
		/* A freeze that cannot be undone cannot stop and start the trace. */
		if (s->ring_config.start_paused && freeze != PT_FREEZE_PAUSE)
			break;
		followed__close_rings(&s->followed);
		s->ring_config.freeze = freeze;
		err = s->config.cgroup ? add_cpus(s) : followed__add_threads(&s->followed);
	}
	return err;
}

/* Checks this before anything is opened: the kernel only reports EPERM. */
static int check_memory(const struct source *s)
{
	bool by_cpu = s->config.cgroup != NULL;
	size_t aux = s->ring_config.aux_size, n = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	int err = by_cpu ? 0 : followed__count(&s->followed, &n);

	if (err) {
		explain_open(err, aux);
		return err;
	}
	err = budget__check(s->config.max_memory, n, aux, AUX_MIN, by_cpu);
	return err ? err
		   : ring_limits__check(n, pt_ring__locked_size(aux, by_cpu), aux,
					PT_RING_FDS - 1 + s->config.n_probes, PT_RING_MAPPINGS);
}

static int add_tracefs(struct source *s, size_t i)
{
	struct tracefs_probe **probe;
	uint32_t *id = VEC_PUSH(&s->tracepoints);
	int err;

	/* Each ring has a breakpoint of its own: no program is attached to them. */
	if (id && s->config.probes[i].breakpoint) {
		*id = 0;
		return 0;
	}
	probe = VEC_PUSH(&s->tracefs);
	if (!probe || !id) {
		s->tracefs.n -= probe != NULL;
		return -ENOMEM;
	}
	err = tracefs_probe__create(probe, &s->config.probes[i], i, id);
	if (err)
		s->tracefs.n--;
	return err;
}

/* With events of the uprobe PMU, each hit would run the BPF program once per ring. */
static int open_tracefs(struct source *s)
{
	const struct source_config *c = &s->config;
	bool has_several =
		c->multi_thread || c->cgroup || c->children || (c->pids && c->pids->n > 1);
	int err = 0;

	if (!has_several)
		return 0;
	for (size_t i = 0; i < s->config.n_probes && !err; i++)
		err = add_tracefs(s, i);
	s->ring_config.tracepoints = s->tracepoints.v;
	return err;
}

/*
 * Opens all rings, with the best available way to freeze them. 0, or -errno after a line and a
 * hint; opens nothing if they would not fit into memory.
 */
static int open_rings(struct source *s)
{
	int err = check_memory(s);

	if (!err)
		err = open_tracefs(s);
	if (err)
		return err;
	err = try_methods(s);
	if (is_unsupported(err) && s->ring_config.start_paused) {
		log__error("-start and -stop: this kernel cannot resume Intel PT at a probe");
		log__hint("needs Linux 6.13 or later, or Debian's 6.12; -source sample and soft "
			  "can do it on any kernel");
	} else if (is_unsupported(err) && s->config.immediate_stop) {
		log__error("-immediate-stop: this kernel cannot freeze Intel PT at a probe");
		log__hint("without -immediate-stop the trace is frozen from user space, about 50 "
			  "us after the hit");
	} else if (is_unsupported(err) && s->config.n_probes > 1 && s->config.freeze_method) {
		log__error("this freeze method supports one probe, not %zu", s->config.n_probes);
		log__hint("use -freeze pause, if the kernel has it, or -freeze disable");
	} else if (err == -ENOENT && s->config.cgroup) {
		explain_no_controller(s->config.cgroup->path);
	} else if (err) {
		explain_open(err, s->ring_config.aux_size);
	}
	return err;
}

/* Converts the frozen rings and the sideband to a recording. */

/* Shorter than a scheduler's time slice: the thread may have spent all of it in the kernel. */
#define SOON_NS 20000000

/* Warns if Intel PT ran for a shorter time than its threads: another program uses the PMU. */
static void warn_not_running(const struct pt_ring *r, size_t size)
{
	bool of_thread = r->of.place.cpu < 0;
	const char *what = of_thread ? "thread" : "CPU";
	int number = of_thread ? r->of.place.pid : r->of.place.cpu;
	uint64_t enabled, running;

	if (pt_ring__times(r, &enabled, &running))
		return;
	log__debug("pt: %s %d: %zu bytes; enabled %llu ns, running %llu ns", what, number, size,
		   (unsigned long long)enabled, (unsigned long long)running);
	if (enabled - running <= enabled / 20)
		return;
	log__warn("%s %d was recorded for only %s of %s: another process uses Intel PT as well",
		  what, number, DURATION(running), DURATION(enabled));
}

/*
 * The thread whose hit froze the ring has run since it was armed, so the ring must have some of it,
 * unless that thread was in the probe's handler by then and executed none of its own code after it.
 */
static void warn_empty(const struct recording *rec, size_t first_hit, const struct rec_aux *aux,
		       const struct pt_ring *r)
{
	uint64_t enabled, running;

	if (aux->size || pt_ring__times(r, &enabled, &running))
		return;
	for (size_t i = first_hit; i < rec->hits.n; i++) {
		const struct mt_hit *hit = &rec->hits.v[i];

		if (aux->tid ? (pid_t)hit->tid != aux->tid : (int)hit->cpu != aux->cpu)
			continue;
		log__warn("thread %u triggered but was not recorded: Intel PT had run there for "
			  "only %s",
			  hit->tid, DURATION(running));
		if (running < SOON_NS)
			log__hint("the hit came as soon as recording began: capture again");
	}
}

static struct rec_aux aux_of(const struct source *s, const struct pt_ring *ring, uint64_t tsc)
{
	if (ring->of.place.cpu >= 0)
		return (struct rec_aux){.cpu = ring->of.place.cpu, .tsc = tsc};
	return (struct rec_aux){.pid = ring->of.pid, .tid = ring->of.place.pid, .tsc = tsc};
}

/* Keeps the spool of a ring that will be closed. 0 or -ENOMEM. */
static int keep_spool(struct source *s, struct pt_ring *ring)
{
	struct ended_spool *ended = VEC_PUSH(&s->spools);

	if (!ended)
		return -ENOMEM;
	pt_ring__drain(ring, false);
	*ended = (struct ended_spool){ring->of.pid, ring->of.place.pid, ring->spool};
	ring->spool = (struct spool)SPOOL_NONE;
	return 0;
}

/* Reads the ring, or finishes its file if it was drained to disk while recording. */
static int read_ring(struct source *s, struct pt_ring *ring, struct recording *rec, uint64_t tsc)
{
	struct rec_aux aux = aux_of(s, ring, tsc);
	int err;

	if (s->config.spool_dir) {
		err = spool__finish(&ring->spool, &aux, rec);
		warn_not_running(ring, aux.size);
		return err;
	}
	err = perf_ring__read_aux(&ring->ring, &aux.data, &aux.size, &aux.wrapped);
	if (err)
		return err;
	warn_not_running(ring, aux.size);
	warn_empty(rec, s->config.first_hit, &aux, ring);
	return recording__add_aux(rec, &aux);
}

static int read_rings(struct source *s, struct recording *rec, uint64_t tsc)
{
	int err = 0;

	VEC_EACH_WHILE(&s->spools, ended, !err) {
		struct rec_aux aux = {.pid = ended->pid, .tid = ended->tid, .tsc = tsc};

		err = spool__finish(&ended->spool, &aux, rec);
	}
	for (size_t i = 0; i < s->followed.rings.n && !err; i++)
		err = read_ring(s, ring_at(s, i), rec, tsc);
	return err;
}

/*
 * After an earlier snapshot: the thread that ran at its end may not run at the start of this one.
 */
static int forget_who_ran(const struct source *s, struct recording *rec)
{
	int err = 0;

	for (size_t i = 0; i < s->followed.rings.n && !err; i++) {
		struct rec_switch nobody = {.time_ns = s->first.perf_ns,
					    .cpu = s->followed.rings.v[i]->place.cpu};

		err = recording__add_switch(rec, &nobody);
	}
	return err;
}

static int read_switches(struct source *s, struct recording *rec)
{
	int err = rec->switches.n ? forget_who_ran(s, rec) : 0;

	return err ? err : switch_log__add_to(&s->followed.sideband.log, rec);
}

/* BPF's times are CLOCK_MONOTONIC; the trace has perf's clock. */
static void convert_hits(struct recording *rec, size_t first, const struct clock_point *now)
{
	for (size_t i = first; i < rec->hits.n; i++)
		rec->hits.v[i].time_ns += now->perf_ns - now->monotonic_ns;
	rec->frozen_ns = now->perf_ns;
	rec->unix_zero_ns += now->monotonic_ns - now->perf_ns;
}

static int pt__read(struct source *s, struct recording *rec)
{
	struct clock_point last;
	int err = perf_clock__now(&last);

	pt_pmu__describe(&s->pmu, s->ring_config.pt_config, &rec->pt);
	rec->kernel_only = s->config.kernel_only;
	if (!err) {
		perf_clock__describe(&rec->pt, ring_at(s, 0)->ring.page, &s->first, &last);
		convert_hits(rec, s->config.first_hit, &last);
		err = read_switches(s, rec);
	}
	if (!err)
		err = read_rings(s, rec, last.tsc);
	/* Our BPF program is still loaded: its code is in the trace too. */
	return followed__finish_read(&s->followed, err, s->first.perf_ns, true, rec);
}

static int pt__probe(void)
{
	struct pt_pmu pmu;
	int err;

	if (pt_pmu__read(&pmu)) {
		explain_no_pmu();
		return -ENODEV;
	}
	err = pt_probe__open(&pmu, false);
	if (err)
		explain_open(err, 0);
	return err;
}

/* Refuses a useless or impossible trace of the kernel before the target is touched. */
static int check_kernel(const struct source *s)
{
	int err = kernel_access__refuse(true);

	if (err)
		return err;
	err = pt_probe__open(&s->pmu, true);
	if (err)
		explain_open_kernel(err);
	return err == -EOPNOTSUPP ? -ENODEV : err;
}

/*
 * Refuses regions with rings per CPU: the threads of one ring are in different regions, or in none.
 */
static int check_regions(const struct source_config *config)
{
	if (!config->n_starts || !config->cgroup)
		return 0;
	log__error("-start and -stop: Intel PT records cgroups per CPU, not per thread");
	log__hint("use -pid or -name with -multi-thread, or -source sample");
	return -EINVAL;
}

static int open_all(struct source *s)
{
	int err;

	if (pt_pmu__read(&s->pmu)) {
		explain_no_pmu();
		return -ENODEV;
	}
	err = check_regions(&s->config);
	if (!err && s->config.kernel)
		err = check_kernel(s);
	if (err)
		return err;
	err = followed__open(&s->followed, &s->config, &followed_ops);
	if (err) {
		explain_open(err, 0);
		return err;
	}
	s->ring_config = (struct pt_ring_config){
		.pmu_type = s->pmu.type,
		.aux_size = source__ring_size(s->config.snapshot_size, AUX_MIN, AUX_MAX),
		.probes = s->config.probes,
		.n_probes = s->config.n_probes,
		.kernel = s->config.kernel,
		.kernel_only = s->config.kernel_only,
		.from_exec = s->config.from_exec,
		.start_paused = s->config.n_starts,
		.spool_dir = s->config.spool_dir,
		.by_cpu = s->config.cgroup != NULL,
	};
	s->followed.main_only = !s->config.multi_thread;
	s->followed.sideband.log.ring_size = s->ring_config.aux_size;
	err = pt_timing__config(&s->config.timing, &s->pmu, &s->ring_config.pt_config);
	return err ? err : open_rings(s);
}

static void pt__close(struct source *s)
{
	if (!s)
		return;
	followed__close(&s->followed);
	VEC_FINI_EACH(&s->spools, e, spool__close(&e->spool));
	/* The rings' events share these, and are closed. */
	VEC_FINI_EACH(&s->tracefs, e, tracefs_probe__remove(*e));
	VEC_FINI(&s->tracepoints);
	free(s);
}

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
	return s->followed.rings.n ? ring_at(s, 0)->probes.v[i] : -1;
}

static int pt__start(struct source *s)
{
	int err = perf_clock__now(&s->first);

	s->followed.sideband.log.start_ns = s->first.perf_ns;
	if (!err)
		err = followed__note(&s->followed, s->first.perf_ns);
	for (size_t i = 0; i < s->followed.rings.n && !err; i++)
		err = pt_ring__enable(ring_at(s, i), &s->ring_config);
	/* Threads that begin later do so after the execve. */
	s->ring_config.from_exec = false;
	if (err)
		explain_open(err, s->ring_config.aux_size);
	else
		log__debug("pt: config %#llx, frozen %s",
			   (unsigned long long)s->ring_config.pt_config,
			   pt_freeze__name(s->ring_config.freeze));
	return err;
}

static bool fits(const struct source *s, size_t n)
{
	return budget__allows(s->config.max_memory, n, s->ring_config.aux_size);
}

/* The event of the first ring has the BPF program. */
static bool may_close(struct source *s, struct followed_ring *ring)
{
	return ring != s->followed.rings.v[0] &&
	       (!s->config.spool_dir || !keep_spool(s, (struct pt_ring *)ring));
}

static int enable_ring(struct source *s, struct followed_ring *ring, uint64_t *time_ns)
{
	struct clock_point now;
	int err = perf_clock__now(&now);

	*time_ns = now.perf_ns;
	return err ? err : pt_ring__enable((struct pt_ring *)ring, &s->ring_config);
}

/* The kernel marks what it writes after the buffer was full (PERF_AUX_FLAG_TRUNCATED). */
static void say_full(struct source *s)
{
	const struct recording *pending = &s->followed.pending;
	bool is_full = false;

	for (size_t i = 0; i < pending->losses.n && !s->said_full && s->config.spool_dir; i++)
		is_full |= pending->losses.v[i].aux_flags != 0;
	if (!is_full)
		return;
	s->said_full = true;
	log__warn("the disk is too slow: a buffer was full, and a part of the trace is lost");
	log__hint("use a larger -snapshot-size, which buffers more");
}

/* For a cgroup one CPU's ring has the traces of many processes. */
static bool holds(const struct source *s, pid_t pid)
{
	return followed__has_ring(&s->followed, pid) ||
	       switch_log__has(&s->followed.sideband.log, pid);
}

static int look(struct source *s)
{
	int err = 0;

	followed__forget_ended(&s->followed);
	for (size_t i = 0; i < s->followed.rings.n && !err; i++) {
		struct pt_ring *ring = ring_at(s, i);

		if (s->config.spool_dir)
			pt_ring__drain(ring, !s->followed.frozen && !ring->of.ended);
		err = sideband__drain(&s->followed.sideband, &ring->ring);
		if (!err)
			err = sideband__drain(&s->followed.sideband, &ring->of.sideband.ring);
	}
	if (err)
		return err;
	followed__threads(&s->followed);
	err = note_joined(s);
	if (!err)
		err = sideband__tidy(&s->followed.sideband, holds, s);
	say_full(s);
	return err;
}

static const struct followed_ops followed_ops = {.ring_size = sizeof(struct pt_ring),
						 .open_ring = open_ring,
						 .close_ring = close_ring,
						 .enable_ring = enable_ring,
						 .disable_ring = disable_ring,
						 .may_close = may_close,
						 .fits = fits,
						 .look = look};

static const char *pt__freeze_name(const struct source *s)
{
	return pt_freeze__name(s->ring_config.freeze);
}

const struct source_ops source_pt = {
	.name = "pt",
	.about = "Intel Processor Trace: the target runs at full speed",
	.probe = pt__probe,
	.open = pt__open,
	.probe_event = pt__probe_event,
	.start = pt__start,
	.fd = followed__fd,
	.state = followed__state,
	.freeze = followed__freeze,
	.read = pt__read,
	.pids = followed__pids,
	.freeze_name = pt__freeze_name,
	.close = pt__close,
};
