// SPDX-License-Identifier: MIT
/* The pt source: Intel PT through perf, with one ring per thread or per CPU. */
#include "capture/pt/pt_source.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/code/kernel_copy.h"
#include "capture/code/live_code.h"
#include "capture/perf/followed.h"
#include "capture/perf/perf_clock.h"
#include "capture/perf/perf_ring.h"
#include "capture/probe/uprobe_event.h"
#include "capture/source.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"

static void explain_no_pmu(void)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	bool is_known = !fs__read("/proc/cpuinfo", &text, &len);

	if (is_known && strstr(text, "hypervisor"))
		log__error("no Intel PT: this is a virtual machine, and hypervisors rarely pass PT "
			   "to guests");
	else if (is_known && !strstr(text, "GenuineIntel"))
		log__error("no Intel PT: this is not an Intel CPU");
	else
		log__error(
			"no Intel PT: this CPU or its kernel lacks the intel_pt PMU (" PT_PMU_PATH
			")");
	log__hint("use -source sample (stacks by a timer, not every call) or -source soft (every "
		  "call, but the target runs about 10,000 times slower)");
}

static void explain_open(int err, size_t aux_size)
{
	struct rlimit rlimit = {0};

	if (err == -EPERM && aux_size) {
		getrlimit(RLIMIT_MEMLOCK, &rlimit);
		/* memlock__check() has passed. */
		log__error("cannot lock %s per thread for the trace: other processes of this user "
			   "use a part of the limit (RLIMIT_MEMLOCK %s, and "
			   "kernel.perf_event_mlock_kb: %ld KiB per CPU)",
			   BYTES(aux_size), BYTES(rlimit.rlim_cur),
			   fs__read_number("/proc/sys/kernel/perf_event_mlock_kb", -1));
		log__hint("use a smaller -snapshot-size; CAP_IPC_LOCK or a higher 'ulimit -l' "
			  "lifts the limit");
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

static void explain_open_kernel(int err)
{
	if (err == -EPERM || err == -EACCES) {
		log__error("cannot trace the kernel: %s", strerror(-err));
		log__hint("needs CAP_PERFMON, or kernel.perf_event_paranoid <= 1 (now %ld); or "
			  "leave out -trace-include-kernel or -trace-kernel-only",
			  fs__read_number("/proc/sys/kernel/perf_event_paranoid", -1));
	} else if (err == -EOPNOTSUPP) {
		log__error("cannot trace the kernel: this intel_pt PMU records user code only");
		log__hint("leave out -trace-include-kernel: time in the kernel shows as [syscall] "
			  "and [untraced]");
	} else {
		explain_open(err, 0);
	}
}

/* The descriptors and mappings of one ring with one probe. */
#define PT_RING_FDS	 3
#define PT_RING_MAPPINGS 3

struct pt_ring_config {
	/* Used of it: the target, the probes (none: nothing triggers), and what is traced. */
	const struct source_config *source;
	uint32_t pmu_type;
	uint64_t pt_config;
	size_t aux_size;
	enum pt_freeze freeze;
	bool from_exec; /* record from the process's execve on, not before */
	/* Per probe: id of its shared tracepoint (uprobe_group); NULL: probes are not shared. */
	const uint32_t *tracepoints;
};

struct pt_ring {
	struct followed_ring of;
	int pt;		 /* the intel_pt event */
	VEC(int) probes; /* events of the probes; in pt's group, except with PT_FREEZE_DISABLE */
	struct perf_ring ring;
	struct spool spool; /* if the ring is drained */
};

#define SIDEBAND_DATA_SIZE (256u << 10)

/*
 * The size of the Intel PT event's own ring of records. They do not wake mtbpf, but those of the
 * sideband do. Each time the kernel takes Intel PT from a CPU, it writes one record of 64 bytes
 * here (AUX), and at least one of 48 bytes to the sideband (a switch).
 */
static size_t pt_data_size(bool by_cpu)
{
	return by_cpu ? 128u << 10 : 16u << 10;
}

const char *pt_freeze__name(enum pt_freeze freeze)
{
	static const char *const names[] = {
		[PT_FREEZE_PAUSE] = "in the kernel, by aux_pause",
		[PT_FREEZE_REFRESH] = "in the kernel, by an event limit",
		[PT_FREEZE_DISABLE] = "from user space",
	};

	return names[freeze];
}

static int open_pt(struct pt_ring *r, const struct pt_ring_config *config, int leader)
{
	struct perf_event_attr attr = {
		.type = config->pmu_type,
		.config = config->pt_config,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.sample_id_all = 1,
		/* A sibling is enabled and disabled with its leader. */
		.disabled = leader < 0,
		.enable_on_exec = leader < 0 && config->from_exec,
		.exclude_kernel = !config->source->kernel,
		.exclude_user = config->source->kernel_only,
		.exclude_hv = 1,
	};

	if (config->source->n_starts)
		aux_action__set(&attr, AUX_START_PAUSED);
	r->pt = event_place__open(&r->of.place, &attr, leader);
	return r->pt < 0 ? r->pt : 0;
}

static int open_probe(struct pt_ring *r, const struct pt_ring_config *config, size_t i, int leader)
{
	struct uprobe_group group = {
		.place = r->of.place,
		.leader = leader,
		.action = config->freeze != PT_FREEZE_PAUSE		    ? 0
			  : config->source->probes[i].role == UPROBE_STARTS ? AUX_RESUME
									    : AUX_PAUSE,
		.disabled = config->freeze == PT_FREEZE_REFRESH,
		.enable_on_exec = config->freeze == PT_FREEZE_REFRESH && config->from_exec,
		.tracepoint = config->tracepoints ? config->tracepoints[i] : 0,
	};
	int *fd = VEC_PUSH(&r->probes);

	if (!fd)
		return -ENOMEM;
	*fd = uprobe_event__open_in_group(&config->source->probes[i], &group);
	if (*fd >= 0)
		return 0;
	return r->probes.v[--r->probes.n];
}

static void close_ring(struct followed_ring *of)
{
	struct pt_ring *r = (struct pt_ring *)of;

	perf_ring__unmap(&r->ring);
	spool__close(&r->spool);
	sideband_ring__close(&r->of.sideband);
	VEC_FINI_EACH(&r->probes, e, close(*e));
	if (r->pt >= 0)
		close(r->pt);
	r->pt = -1;
}

/*
 * Opens all events at a place, disabled, and maps their buffers. 0, or -errno: -ESRCH: the thread
 * has ended; -EINVAL, -EOPNOTSUPP: the kernel lacks PT_FREEZE_PAUSE, or PT_FREEZE_REFRESH cannot
 * have several probes; -EBUSY: Intel PT is in use; -EPERM: locked memory; -ENODEV: the CPU is
 * offline; -ENOENT: the cgroup lacks the perf_event controller. Prints nothing.
 */
static int open_ring_at(struct pt_ring *r, const struct event_place *place,
			const struct pt_ring_config *config)
{
	const struct sideband_ring_config sideband = {.size = SIDEBAND_DATA_SIZE,
						      .at_once = !config->source->cgroup,
						      .switches = config->source->cgroup};
	int err;

	*r = (struct pt_ring){.of = {.place = *place, .wakes = -1, .sideband = {.event = -1}},
			      .pt = -1,
			      .spool = SPOOL_NONE};
	err = config->source->spool_dir ? spool__open(&r->spool, config->source->spool_dir) : 0;
	if (!err)
		err = sideband_ring__open(&r->of.sideband, place, &sideband);
	if (!err && config->source->n_probes && config->freeze == PT_FREEZE_REFRESH) {
		/* One probe's event leads Intel PT's group: its limit ends the whole group. */
		err = config->source->n_probes > 1 ? -EOPNOTSUPP : open_probe(r, config, 0, -1);
		if (!err)
			err = open_pt(r, config, r->probes.v[0]);
	} else if (!err) {
		err = open_pt(r, config, -1);
		for (size_t i = 0; i < config->source->n_probes && !err; i++)
			err = open_probe(r, config, i,
					 config->freeze == PT_FREEZE_PAUSE ? r->pt : -1);
	}
	if (!err)
		err = perf_ring__map(
			&r->ring, r->pt, pt_data_size(config->source->cgroup), config->aux_size,
			config->source->spool_dir ? PERF_RING_DRAINED : PERF_RING_NORMAL);
	if (err)
		close_ring(&r->of);
	return err;
}

/* Begins recording. 0 or -errno. */
static int enable(struct pt_ring *r, const struct pt_ring_config *config)
{
	if (config->freeze == PT_FREEZE_REFRESH && config->source->n_probes) {
		int probe = r->probes.v[0];

		if (ioctl(probe, PERF_EVENT_IOC_REFRESH, 1))
			return -errno;
		/* The limit stays set; the execve enables the event. */
		return config->from_exec && ioctl(probe, PERF_EVENT_IOC_DISABLE, 0) ? -errno : 0;
	}
	if (config->from_exec)
		return 0;
	return ioctl(r->pt, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

/* Ends recording; the AUX head is final then. */
static void disable_ring(struct followed_ring *of)
{
	struct pt_ring *r = (struct pt_ring *)of;

	/*
	 * Disable Intel PT first: the hit's message may arrive while the target is still in the
	 * probe's handler, and without the probe's event nothing would pause the trace.
	 */
	if (r->pt >= 0)
		ioctl(r->pt, PERF_EVENT_IOC_DISABLE, 0);
	for (size_t i = 0; i < r->probes.n; i++)
		ioctl(r->probes.v[i], PERF_EVENT_IOC_DISABLE, 0);
}

/*
 * Writes the new data to the ring's open spool, and resumes a ring that was full: the kernel
 * disables an event whose buffer is full (kernel/events/ring_buffer.c:
 * perf_aux_output_begin()); only user space enables it again. Enabling an active event does
 * nothing.
 */
static void drain(struct pt_ring *r, bool runs)
{
	size_t n = perf_ring__drain_aux(&r->ring, &r->spool);

	if (n >= r->ring.aux_size / 2 && runs)
		ioctl(r->pt, PERF_EVENT_IOC_ENABLE, 0);
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
	/* If there may be several rings: the probes that they share, and their tracepoints' ids. */
	VEC(struct tracefs_probe *) tracefs;
	VEC(uint32_t) tracepoints;
	/* The spools of rings that were closed when their threads ended. */
	VEC(struct ended_spool) spools;
	struct clock_point first;
	bool said_full; /* say_full() has printed its warning */
};

static struct pt_ring *ring_at(const struct source *s, size_t i)
{
	return (struct pt_ring *)s->followed.rings.v[i];
}

/* Opening rings, and choosing how they freeze. */

static const struct followed_ops followed_ops;

static int open_ring(struct source *s, struct followed_ring *of, const struct event_place *place)
{
	struct pt_ring *ring = (struct pt_ring *)of;
	int err = open_ring_at(ring, place, &s->ring_config);

	/* The event wakes when the buffer is half full. */
	if (s->config.spool_dir)
		of->wakes = ring->pt;
	return err;
}

static bool is_unsupported(int err)
{
	return err == -EINVAL || err == -EOPNOTSUPP;
}

/* Tries the methods, best first: version numbers say little (6.12.117 has AUX pause too). */
static int try_methods(struct source *s)
{
	const struct cgroup *cgroup = s->config.cgroup;
	struct event_place place = {0};
	cpu_set_t cpus;
	int err = -EINVAL;

	if (cgroup) {
		place = event_place__of_cgroup(cgroup->fd, 0);
		followed__cpus(&s->followed, NULL, &cpus);
	}
	for (enum pt_freeze freeze = PT_FREEZE_PAUSE;
	     is_unsupported(err) && freeze <= PT_FREEZE_DISABLE; freeze++) {
		if (s->config.freeze_method && (int)freeze != s->config.freeze_method - 1)
			continue;
		if (s->config.immediate_stop && freeze == PT_FREEZE_DISABLE)
			break;
		/* A freeze that cannot be undone cannot stop and start the trace. */
		if (s->config.n_starts && freeze != PT_FREEZE_PAUSE)
			break;
		followed__close_rings(&s->followed);
		s->ring_config.freeze = freeze;
		err = cgroup ? followed__add_cpus(&s->followed, &place, &cpus)
			     : followed__add_threads(&s->followed);
		if (!err && !s->followed.rings.n)
			err = -ENODEV;
	}
	return err;
}

size_t pt_ring__locked_size(size_t aux_size, bool by_cpu)
{
	size_t pages = 2 * (size_t)sysconf(_SC_PAGESIZE);

	return pages + SIDEBAND_DATA_SIZE + pt_data_size(by_cpu) + aux_size;
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

/* With events of the uprobe PMU, each hit would run the BPF program once per ring. */
static int open_tracefs(struct source *s)
{
	const struct source_config *c = &s->config;
	bool has_several =
		c->multi_thread || c->cgroup || c->children || (c->pids && c->pids->n > 1);

	for (size_t i = 0; i < c->n_probes && has_several; i++) {
		struct tracefs_probe *probe;
		uint32_t id = 0;
		int err;

		/* Each ring has a breakpoint of its own: no program is attached to them. */
		if (!c->probes[i].breakpoint) {
			err = tracefs_probe__create(&probe, &c->probes[i], i, &id);
			if (err)
				return err;
			if (VEC_ADD(&s->tracefs, probe)) {
				tracefs_probe__remove(probe);
				return -ENOMEM;
			}
		}
		if (VEC_ADD(&s->tracepoints, id))
			return -ENOMEM;
	}
	s->ring_config.tracepoints = s->tracepoints.v;
	return 0;
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
	if (is_unsupported(err) && s->config.n_starts) {
		log__error("-start and -stop: this kernel cannot resume Intel PT at a probe");
		log__hint("needs Linux 6.13 or later, or Debian's 6.12; -source sample and soft "
			  "can do it on any kernel");
	} else if (is_unsupported(err) && s->config.immediate_stop) {
		log__error("-immediate-stop: this kernel cannot freeze Intel PT at a probe");
		log__hint("without -immediate-stop the trace is frozen from user space, about 50 "
			  "us after the hit");
	} else if (is_unsupported(err) && s->config.n_probes > 1 && s->config.freeze_method) {
		log__error("this -freeze method supports one probe, not %zu", s->config.n_probes);
		log__hint("use -freeze pause, if the kernel has it, or -freeze disable");
	} else if (err == -ENOENT && s->config.cgroup) {
		log__error("the cgroup %s lacks the perf_event controller", s->config.cgroup->path);
		log__hint("enable any controller in the parent cgroup: 'echo +cpu "
			  ">%s/../cgroup.subtree_control' (not possible if a v1 hierarchy has "
			  "perf_event)",
			  s->config.cgroup->path);
	} else if (err) {
		explain_open(err, s->ring_config.aux_size);
	}
	return err;
}

/* Converts the frozen rings and the sideband to a recording. */

/* If Intel PT ran for less than this, the thread may have spent all of it in the kernel. */
#define SOON_NS 20000000

/*
 * Warns if Intel PT ran for a shorter time than its threads, since another program uses the PMU
 * (the kernel's multiplexing), and if it recorded nothing of a thread that triggered. That thread
 * has run since the ring was armed, so the ring must have some of it, unless the thread was in the
 * probe's handler by then and executed none of its own code after it.
 */
static void warn_missing(const struct source *s, const struct recording *rec,
			 const struct rec_aux *aux, const struct pt_ring *r)
{
	bool of_thread = r->of.place.cpu < 0;
	const char *what = of_thread ? "thread" : "CPU";
	int number = of_thread ? r->of.place.pid : r->of.place.cpu;
	struct {
		uint64_t value, enabled, running;
	} ns;

	if (read(r->pt, &ns, sizeof(ns)) != sizeof(ns))
		return;
	log__debug("pt: %s %d: %zu bytes; enabled %llu ns, running %llu ns", what, number,
		   aux->size, (unsigned long long)ns.enabled, (unsigned long long)ns.running);
	if (ns.enabled - ns.running > ns.enabled / 20)
		log__warn("%s %d was recorded for only %s of %s: another process uses Intel PT as "
			  "well",
			  what, number, DURATION(ns.running), DURATION(ns.enabled));
	if (aux->size || s->config.spool_dir)
		return;
	for (size_t i = s->config.first_hit; i < rec->hits.n; i++) {
		const struct mt_hit *hit = &rec->hits.v[i];

		if (aux->tid ? (pid_t)hit->tid != aux->tid : (int)hit->cpu != aux->cpu)
			continue;
		log__warn("thread %u triggered but was not recorded: Intel PT had recorded for "
			  "only %s by then",
			  hit->tid, DURATION(ns.running));
		if (ns.running < SOON_NS)
			log__hint("the hit came as soon as recording began: capture again");
	}
}

/* Reads the ring, or finishes its file if it was drained to disk while recording. */
static int read_ring(struct source *s, struct pt_ring *ring, struct recording *rec, uint64_t tsc)
{
	struct rec_aux aux = {.tsc = tsc};
	int err;

	if (ring->of.place.cpu >= 0) {
		aux.cpu = ring->of.place.cpu;
	} else {
		aux.pid = ring->of.pid;
		aux.tid = ring->of.place.pid;
	}
	if (s->config.spool_dir) {
		err = spool__finish(&ring->spool, &aux, rec);
		warn_missing(s, rec, &aux, ring);
		return err;
	}
	err = perf_ring__read_aux(&ring->ring, &aux.data, &aux.size, &aux.wrapped);
	if (err)
		return err;
	warn_missing(s, rec, &aux, ring);
	return recording__add_aux(rec, &aux);
}

static int read_switches(struct source *s, struct recording *rec)
{
	bool is_later = rec->switches.n;
	int err = 0;

	/*
	 * After an earlier snapshot: the thread that ran at its end may not run at the start of
	 * this one.
	 */
	for (size_t i = 0; i < s->followed.rings.n && !err && is_later; i++) {
		struct rec_switch nobody = {.time_ns = s->first.perf_ns,
					    .cpu = s->followed.rings.v[i]->place.cpu};

		err = recording__add_switch(rec, &nobody);
	}
	return err ? err : switch_log__add_to(&s->followed.sideband.log, rec);
}

static int pt__read(struct source *s, struct recording *rec)
{
	struct clock_point last;
	int err = perf_clock__now(&last);

	pt_pmu__describe(&s->pmu, s->ring_config.pt_config, &rec->pt);
	rec->kernel_only = s->config.kernel_only;
	if (!err) {
		perf_clock__describe(&rec->pt, ring_at(s, 0)->ring.page, &s->first, &last);
		/* BPF's times are CLOCK_MONOTONIC; the trace has perf's clock. */
		for (size_t i = s->config.first_hit; i < rec->hits.n; i++)
			rec->hits.v[i].time_ns += last.perf_ns - last.monotonic_ns;
		rec->frozen_ns = last.perf_ns;
		rec->unix_zero_ns += last.monotonic_ns - last.perf_ns;
		err = read_switches(s, rec);
	}
	VEC_EACH_WHILE(&s->spools, ended, !err) {
		struct rec_aux aux = {.pid = ended->pid, .tid = ended->tid, .tsc = last.tsc};

		err = spool__finish(&ended->spool, &aux, rec);
	}
	for (size_t i = 0; i < s->followed.rings.n && !err; i++)
		err = read_ring(s, ring_at(s, i), rec, last.tsc);
	/*
	 * Copies the kernel's code while our BPF program is loaded: the trace contains the program,
	 * too.
	 */
	return followed__finish_read(&s->followed, err, s->first.perf_ns, true, rec);
}

#define PROBE_AUX_SIZE (128u << 10)
/* Far more branches than a thread executes from the start to the hit. */
#define BRANCHES 12000
/* A TNT packet holds up to 6 branches per byte, or 47 in 8 bytes (Intel SDM vol. 3, 33.4.2.1). */
#define BRANCHES_SIZE (BRANCHES / 8)

/* Config bits that every PMU accepts. */
static uint64_t config_of(const struct pt_pmu *pmu)
{
	static const struct pt_timing none = {0};
	uint64_t config;

	pt_timing__config(&none, pmu, &config);
	return config;
}

int pt_probe__open(const struct pt_pmu *pmu, bool kernel)
{
	struct perf_event_attr attr = {
		.type = pmu->type,
		.config = config_of(pmu),
		.disabled = 1,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
	};
	struct event_place place = event_place__of_thread(0);
	_cleanup_close_ int fd = event_place__open(&place, &attr, -1);

	return fd < 0 ? fd : 0;
}

__attribute__((noinline, noipa)) static void run_branches(void)
{
	for (unsigned int n = BRANCHES; n; n--)
		__asm__ volatile("" : "+r"(n));
}

int pt_probe__freeze(const struct pt_pmu *pmu, enum pt_freeze freeze)
{
	struct uprobe_spec spec;
	const struct source_config source = {.probes = &spec, .n_probes = 1};
	struct pt_ring_config config = {
		.source = &source,
		.pmu_type = pmu->type,
		.pt_config = config_of(pmu),
		.aux_size = PROBE_AUX_SIZE,
		.freeze = freeze,
	};
	struct event_place place = event_place__of_thread(gettid());
	struct pt_ring ring;
	uint64_t size = 0;
	int err = own_probe__spec_of(&spec, (uintptr_t)own_probe__hit);

	if (!err)
		err = open_ring_at(&ring, &place, &config);
	if (err)
		return err;
	err = enable(&ring, &config);
	if (!err) {
		own_probe__hit();
		run_branches();
		disable_ring(&ring.of);
		/* The buffer is too large to wrap: its head is the trace's size. */
		size = __atomic_load_n(&ring.ring.page->aux_head, __ATOMIC_ACQUIRE);
	}
	close_ring(&ring.of);
	if (err)
		return err;
	if (freeze == PT_FREEZE_DISABLE)
		return size >= BRANCHES_SIZE ? 0 : -ENODATA;
	return size && size < BRANCHES_SIZE ? 0 : -ENODATA;
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

static int open_all(struct source *s)
{
	int err;

	if (pt_pmu__read(&s->pmu)) {
		explain_no_pmu();
		return -ENODEV;
	}
	if (s->config.n_starts && s->config.cgroup) {
		/* The threads of one CPU's ring are in different regions, or in none. */
		log__error("-start and -stop: Intel PT records cgroups per CPU, not per thread");
		log__hint("use -pid or -name with -multi-thread, or -source sample");
		return -EINVAL;
	}
	err = s->config.kernel ? check_kernel(s) : 0;
	if (err)
		return err;
	err = followed__open(&s->followed, &s->config, &followed_ops);
	if (err) {
		explain_open(err, 0);
		return err;
	}
	s->ring_config = (struct pt_ring_config){
		.source = &s->config,
		.pmu_type = s->pmu.type,
		.aux_size = source__ring_size(s->config.snapshot_size, AUX_MIN, AUX_MAX),
		.from_exec = s->config.from_exec,
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
	/* The rings' events, which share these probes, are closed by now. */
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

/*
 * The trigger is attached to one ring's event: with tracefs, all rings' events share the probe and
 * its BPF program.
 */
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
		err = enable(ring_at(s, i), &s->ring_config);
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

/*
 * Keeps the ring's spool, if any, and begins another one. False for the first ring, whose event has
 * the BPF program.
 */
static bool may_close(struct source *s, struct followed_ring *of)
{
	struct pt_ring *ring = (struct pt_ring *)of;
	struct ended_spool *ended;

	if (of == s->followed.rings.v[0])
		return false;
	if (!s->config.spool_dir)
		return true;
	ended = VEC_PUSH(&s->spools);
	if (!ended)
		return false;
	drain(ring, false);
	*ended = (struct ended_spool){of->pid, of->place.pid, ring->spool};
	ring->spool.err = spool__open(&ring->spool, s->config.spool_dir);
	if (ring->spool.err)
		log__warn("cannot write more of the trace of thread %d: %s", of->place.pid,
			  strerror(-ring->spool.err));
	return true;
}

static int enable_ring(struct source *s, struct followed_ring *ring, uint64_t *time_ns)
{
	struct clock_point now;
	int err = perf_clock__now(&now);

	*time_ns = now.perf_ns;
	return err ? err : enable((struct pt_ring *)ring, &s->ring_config);
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
			drain(ring, !s->followed.frozen && !ring->of.ended);
		err = sideband__drain(&s->followed.sideband, &ring->ring);
		if (!err)
			err = sideband__drain(&s->followed.sideband, &ring->of.sideband.ring);
	}
	if (err)
		return err;
	err = followed__threads(&s->followed);
	/* The threads that were moved into the cgroup. */
	VEC_EACH_WHILE(&s->followed.sideband.joined, t, !err) {
		if (!followed__knows(&s->followed, t->pid))
			err = followed__note_process(&s->followed, t->pid, t->start_ns);
		else if (!recording__find_thread(&s->followed.pending, t->pid, t->tid))
			err = process_note__thread(&s->followed.pending, t->pid, t->tid,
						   t->start_ns);
	}
	s->followed.sideband.joined.n = 0;
	if (!err)
		err = sideband__tidy(&s->followed.sideband, holds, s);
	/* The kernel marks what it writes after the buffer was full (PERF_AUX_FLAG_TRUNCATED). */
	VEC_EACH_WHILE(&s->followed.pending.losses, loss, s->config.spool_dir && !s->said_full) {
		if (!loss->aux_flags)
			continue;
		s->said_full = true;
		log__warn("the disk is too slow: a buffer was full, and a part of the trace is "
			  "lost");
		log__hint("use a larger -snapshot-size, which buffers more");
	}
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
