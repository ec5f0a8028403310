// SPDX-License-Identifier: MIT
/*
 * The sample source: stacks by the clock and at every switch, with one flight recorder per thread
 * or CPU.
 */
#include "capture/sample/sample_source.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/code/kernel_copy.h"
#include "capture/perf/perf_ring.h"
#include "capture/code/live_code.h"
#include "capture/sample/sample_ring.h"
#include "kernel/rights.h"
#include "target/process.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"

#define RING_MIN (64u << 10)
#define RING_MAX (1u << 30)

static void explain(int err)
{
	/* With these rights, EPERM means locked memory; a missing right gives EACCES. */
	if (err == -EPERM && (capability__has(CAP_PERFMON) || capability__has(CAP_SYS_ADMIN))) {
		/* The rings of all of the user's processes count (perf_mmap() in the kernel). */
		log__error("cannot sample the process: the user who runs mtbpf may lock no more "
			   "memory");
		log__hint("mtbpf needs CAP_IPC_LOCK, or a larger RLIMIT_MEMLOCK (ulimit -l) or "
			  "kernel.perf_event_mlock_kb (now %ld)",
			  fs__read_number("/proc/sys/kernel/perf_event_mlock_kb", -1));
		return;
	}
	ring_limits__explain(err, "sample the process");
}

/* Tries to open a ring on this process: the requirements are the same for every process. */
static int sample__probe(void)
{
	struct sample_ring_config config = {.period_ns = 1000000000, .size = RING_MIN, .gate = -1};
	struct event_place place = event_place__of_thread(getpid());
	struct sample_ring ring;
	int err = sample_ring__open(&ring, &place, &config);

	if (err)
		explain(err);
	else
		sample_ring__close(&ring);
	return err;
}

/* True if this number of rings fits into -max-memory, with their other memory. */
static bool fits(const struct source *s, size_t rings)
{
	return budget__allows(s->config.max_memory, rings,
			      sample_ring__locked_size(s->ring_config.size) + s->config.sample_log);
}

/* All threads are recorded, so each gets less if there are many. */
static int check_memory(struct source *s, size_t rings)
{
	size_t wanted = source__ring_size(s->config.snapshot_size, RING_MIN, RING_MAX);
	bool by_cpu = sample_source__is_by_cpu(s);
	size_t size, locked, each;
	int err;

	s->ring_config.size = wanted;
	while (s->ring_config.size > RING_MIN && !fits(s, rings))
		s->ring_config.size >>= 1;
	size = s->ring_config.size;
	if (size != wanted && fits(s, rings))
		log__info("sample: %zu %s share -max-memory: %s each", rings,
			  by_cpu ? "CPUs" : "threads", BYTES(size));
	locked = sample_ring__locked_size(size);
	each = locked + s->config.sample_log;
	err = budget__check(s->config.max_memory, rings, each, each, by_cpu);
	return err ? err
		   : ring_limits__check(rings, locked, size, SAMPLE_RING_FDS, SAMPLE_RING_MAPPINGS);
}

static const struct followed_ops followed_ops;

static int open_ring(struct source *s, struct followed_ring *ring, const struct event_place *place)
{
	return sample_ring__open((struct sample_ring *)ring, place, &s->ring_config);
}

static void close_ring(struct followed_ring *ring)
{
	sample_ring__close((struct sample_ring *)ring);
}

static void disable_ring(struct followed_ring *ring)
{
	sample_ring__disable((struct sample_ring *)ring);
}

/*
 * The place of a CPU's events: all processes, filtered by the gate for the target; or a cgroup,
 * filtered by the kernel.
 */
static struct event_place place_of_cpus(const struct source *s)
{
	if (!s->config.sample_by_cpu)
		return event_place__of_cgroup(s->config.cgroup->fd, 0);
	return (struct event_place){.pid = -1};
}

#define LOOK_NS 1000000000

/*
 * The target's threads may be allowed to run on other CPUs meanwhile: records those CPUs from now
 * on. On CPUs that are no longer allowed, stops the clock; the ring's contents stay.
 */
static int follow_cpus(struct source *s)
{
	struct event_place place;
	uint64_t now = clock__now_ns();
	size_t before = s->followed.rings.n;
	cpu_set_t cpus;
	int err;

	if (!sample_source__is_by_cpu(s) || now < s->look_ns + LOOK_NS)
		return 0;
	s->look_ns = now;
	place = place_of_cpus(s);
	followed__cpus(&s->followed, s->config.cgroup, &cpus);
	for (size_t i = 0; i < before; i++) {
		int cpu = s->followed.rings.v[i]->place.cpu;

		sample_ring__set_clock(ring_at(s, i), CPU_ISSET(cpu, &cpus));
		CPU_CLR(cpu, &cpus);
	}
	if (!CPU_COUNT(&cpus) || !fits(s, before + (size_t)CPU_COUNT(&cpus)))
		return 0;
	err = followed__add_cpus(&s->followed, &place, &cpus);
	for (size_t i = before; i < s->followed.rings.n && !err; i++)
		err = sample_ring__enable(ring_at(s, i));
	return err;
}

static int open_rings(struct source *s)
{
	struct event_place place;
	cpu_set_t cpus;
	size_t n;
	int err;

	if (sample_source__is_by_cpu(s)) {
		place = place_of_cpus(s);
		/*
		 * Opens rings only on CPUs that the target may use: the clock would wake the others
		 * when they are idle.
		 */
		followed__cpus(&s->followed, s->config.cgroup, &cpus);
		err = check_memory(s, (size_t)CPU_COUNT(&cpus));
		if (err)
			return err;
		err = followed__add_cpus(&s->followed, &place, &cpus);
		if (!err && !s->followed.rings.n)
			err = -ENODEV;
	} else {
		err = followed__count(&s->followed, &n);
		if (!err) {
			err = check_memory(s, n);
			if (err)
				return err;
			err = followed__add_threads(&s->followed);
		}
	}
	if (err)
		explain(err);
	return err;
}

static void sample__close(struct source *s)
{
	if (!s)
		return;
	followed__close(&s->followed);
	free(s);
}

static struct source *sample__open(const struct source_config *config)
{
	int err = config->kernel ? kernel_access__refuse(false) : 0;
	struct source *s = err ? NULL : calloc(1, sizeof(*s));

	if (!s) {
		errno = err ? -err : ENOMEM;
		return NULL;
	}
	s->config = *config;
	s->followed.epoll_fd = -1;
	err = followed__open(&s->followed, &s->config, &followed_ops);
	if (err) {
		explain(err);
		goto fail;
	}
	s->ring_config = (struct sample_ring_config){
		.period_ns = sample_rate__period(config->sample_rate),
		.stack = config->sample_stack,
		.gate = config->sample_gate,
		.switch_gate = config->sample_switch_gate,
		.no_switches = config->sample_by_cpu,
		.no_stacks = config->sample_no_stacks,
		.cgroup = config->cgroup,
		.kernel = config->kernel,
		.from_exec = config->from_exec && !sample_source__is_by_cpu(s),
		.branches = config->branches,
		.calls = config->sample_calls,
	};
	s->longest_ns = s->ring_config.period_ns;
	err = open_rings(s);
	if (!err)
		return s;
fail:
	sample__close(s);
	errno = -err;
	return NULL;
}

static int enable_ring(struct source *s, struct followed_ring *ring, uint64_t *time_ns)
{
	*time_ns = clock__now_ns();
	return sample_ring__enable((struct sample_ring *)ring);
}

static bool holds(const struct source *s, pid_t pid)
{
	return followed__has_ring(&s->followed, pid);
}

static int drain(struct source *s)
{
	bool by_cpu = sample_source__is_by_cpu(s);
	int err = 0;

	followed__forget_ended(&s->followed);
	for (size_t i = 0; i < s->followed.rings.n && !err; i++)
		err = sideband__collect(&s->followed.sideband,
					&s->followed.rings.v[i]->sideband.ring);
	if (!err)
		err = sideband__settle(&s->followed.sideband, s->followed.frozen);
	if (!err && by_cpu)
		err = followed__processes(&s->followed);
	else if (!err)
		err = followed__threads(&s->followed);
	return err ? err : sideband__tidy(&s->followed.sideband, by_cpu ? NULL : holds, s);
}

static int look(struct source *s)
{
	int err = drain(s);

	return err || s->followed.frozen ? err : follow_cpus(s);
}

static const struct followed_ops followed_ops = {.ring_size = sizeof(struct sample_ring),
						 .open_ring = open_ring,
						 .close_ring = close_ring,
						 .enable_ring = enable_ring,
						 .disable_ring = disable_ring,
						 .fits = fits,
						 .look = look};

#define RECORD_MAX 65536

/* The full ring with the shortest look-back or, if none is full, the fullest ring. */
struct lookback {
	uint64_t written, span_ns; /* 0: nothing was written */
	size_t size;
};

static int read_ring(const struct source *s, const struct sample_ring *ring,
		     struct sample_record_ids *ids, struct recording *rec, struct lookback *least)
{
	uint8_t record[RECORD_MAX] __attribute__((aligned(8)));
	struct perf_ring_cursor cursor = perf_ring__newest(&ring->ring);
	uint64_t written = perf_ring__written(&ring->ring), oldest_ns = rec->frozen_ns, span_ns;
	size_t size = ring->ring.data_size, samples = rec->samples.n, scheds = rec->scheds.n;
	bool is_full = written >= size, was_full = least->written >= size;
	int n, err = 0;

	if (is_full && size > rec->ring_bytes)
		rec->ring_bytes = size;
	ids->switches = ring->ids[SAMPLE_EVENT_SWITCHES];
	ids->calls = s->ring_config.calls ? ring->ids[SAMPLE_EVENT_CLOCK] : 0;
	ids->minor_faults = ring->ids[SAMPLE_EVENT_MINOR_FAULTS];
	ids->major_faults = ring->ids[SAMPLE_EVENT_MAJOR_FAULTS];
	while (!err && (n = perf_ring__older(&ring->ring, &cursor, record, sizeof(record))) != 0)
		if (n > 0)
			err = sample_record__add(ids, rec, record, (size_t)n);
	/* The oldest record was read last. */
	if (rec->samples.n > samples && rec->samples.v[rec->samples.n - 1].time_ns < oldest_ns)
		oldest_ns = rec->samples.v[rec->samples.n - 1].time_ns;
	if (rec->scheds.n > scheds && rec->scheds.v[rec->scheds.n - 1].time_ns < oldest_ns)
		oldest_ns = rec->scheds.v[rec->scheds.n - 1].time_ns;
	if (sample_source__is_by_cpu(s) && is_full && oldest_ns > rec->complete_ns)
		rec->complete_ns = oldest_ns;
	span_ns = rec->frozen_ns - oldest_ns;
	if (is_full && was_full ? span_ns < least->span_ns : written > least->written)
		*least = (struct lookback){.written = written, .span_ns = span_ns, .size = size};
	return err;
}

static int sample__read(struct source *s, struct recording *rec)
{
	bool triggered = rec->hits.n > s->config.first_hit;
	/* Leave out what was sampled after the trigger, before all events had stopped. */
	struct sample_record_ids ids = {.until_ns = triggered ? rec->hits.v[rec->hits.n - 1].time_ns
							      : 0};
	size_t first = rec->samples.n;
	struct lookback least = {0};
	pid_t last = 0;
	int err = 0;

	rec->sample_period_ns = s->longest_ns;
	rec->complete_ns = s->start_ns;
	rec->frozen_ns = ids.until_ns ? ids.until_ns : clock__now_ns();
	rec->sampled_ns = rec->frozen_ns > s->start_ns ? rec->frozen_ns - s->start_ns : 0;
	for (size_t i = 0; i < s->followed.rings.n && !err; i++)
		err = read_ring(s, ring_at(s, i), &ids, rec, &least);
	/* Processes that were moved into the cgroup lack fork records. */
	for (size_t i = first; i < rec->samples.n && !err && s->config.cgroup; i++) {
		pid_t pid = rec->samples.v[i].pid;

		if (pid != last && !followed__knows(&s->followed, pid))
			err = followed__note_process(&s->followed, pid, s->start_ns);
		last = pid;
	}
	log__debug("sample: %zu samples, %zu switches; %zu samples after the hit left out",
		   rec->samples.n, rec->scheds.n, ids.late);
	if (least.span_ns && !s->config.is_silent && least.written >= least.size)
		log__info("sample: a full ring looks back %s; -snapshot-size sets its size",
			  DURATION(least.span_ns));
	else if (least.span_ns && !s->config.is_silent)
		log__info("sample: the fullest ring is %.1f %% full; a full one would look back "
			  "about %s",
			  100 * (double)least.written / (double)least.size,
			  DURATION((uint64_t)((double)least.span_ns / (double)least.written *
					      (double)least.size)));
	return followed__finish_read(&s->followed, err, s->start_ns, false, rec);
}

/* With from_exec, the execve enables the events. */
static int sample__start(struct source *s)
{
	int err;

	s->start_ns = s->rate_ns = clock__now_ns();
	/*
	 * Handles the forks before and since the events were opened first: followed__note() then
	 * also reads the mappings of these children from /proc.
	 */
	err = sample_source__is_by_cpu(s) ? followed__add_targets(&s->followed) ?: drain(s) : 0;
	if (!err)
		err = followed__note(&s->followed, s->start_ns);
	for (size_t i = 0; i < s->followed.rings.n && !err && !s->ring_config.from_exec; i++)
		err = sample_ring__enable(ring_at(s, i));
	/* Rings that are opened later are those of threads after the execve. */
	s->ring_config.from_exec = false;
	if (err)
		explain(err);
	return err;
}

/*
 * Keeps the rings and the events, which the recorder's map contains. Nobody has read the sideband
 * since the freeze, so it may have lost records; the next start() reads the threads from /proc.
 */
static int sample__resume(struct source *s, const struct source_config *config)
{
	int err;

	if (!s->followed.frozen || !sample_source__is_by_cpu(s))
		return -EOPNOTSUPP;
	s->config = *config;
	s->longest_ns = s->ring_config.period_ns;
	err = followed__reopen(&s->followed, &s->config);
	if (!err)
		err = drain(s);
	s->followed.pending.losses.n = 0;
	return err;
}

static void sample__set_rate(struct source *s, unsigned int hz)
{
	uint64_t period_ns = sample_rate__period(hz);

	if (s->followed.frozen)
		return;
	s->ring_config.period_ns = period_ns;
	for (size_t i = 0; i < s->followed.rings.n; i++) {
		sample_ring__set_period(ring_at(s, i), &s->ring_config);
		ring_at(s, i)->written_before = perf_ring__written(&ring_at(s, i)->ring);
	}
	s->rate_ns = clock__now_ns();
	if (period_ns > s->longest_ns)
		s->longest_ns = period_ns;
}

static const char *sample__memory(const struct source *s, char text[static SOURCE_TEXT_SIZE])
{
	char each[UNITS_TEXT_SIZE];
	const char *whose = sample_source__is_by_cpu(s) ? "CPU" : "thread";
	size_t size = s->ring_config.size;

	units__format_size(each, size);
	snprintf(text, SOURCE_TEXT_SIZE, "a ring of %s for each %s (%zu), %s in all", each, whose,
		 s->followed.rings.n,
		 BYTES(s->followed.rings.n *
		       (sample_ring__locked_size(size) + s->config.sample_log)));
	return text;
}

static uint64_t sample__lookback_ns(const struct source *s)
{
	uint64_t ran_ns = clock__now_ns() - s->rate_ns, least = UINT64_MAX;

	for (size_t i = 0; i < s->followed.rings.n; i++) {
		const struct sample_ring *ring = ring_at(s, i);
		uint64_t bytes = perf_ring__written(&ring->ring) - ring->written_before, ns;

		if (!bytes)
			continue;
		ns = (uint64_t)((double)ran_ns * (double)ring->ring.data_size / (double)bytes);
		least = ns < least ? ns : least;
	}
	return least;
}

static const char *sample__freeze_name(const struct source *s)
{
	return s->config.sample_gate >= 0 ? "in the kernel, by a BPF program" : "from user space";
}

const struct source_ops source_sample = {
	.name = "sample",
	.about = "stacks by a timer and at every context switch",
	.samples = true,
	.probe = sample__probe,
	.open = sample__open,
	.start = sample__start,
	.resume = sample__resume,
	.fd = followed__fd,
	.state = followed__state,
	.freeze = followed__freeze,
	.read = sample__read,
	.pids = followed__pids,
	.set_rate = sample__set_rate,
	.memory = sample__memory,
	.lookback_ns = sample__lookback_ns,
	.freeze_name = sample__freeze_name,
	.close = sample__close,
};
