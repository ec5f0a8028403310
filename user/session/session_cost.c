// SPDX-License-Identifier: MIT
/* The cost of a session to its target, and the size of its rings. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/probe/uprobe_event.h"
#include "session/session_internal.h"
#include "trigger/recorder.h"
#include "trigger/trigger.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"

/* How the kernel handles a hit of the probe. */
struct hit_kind {
	bool emulated; /* else the instruction under it is single-stepped */
	bool returns;  /* the call's return is probed as well, ... */
	bool by_insn;  /* ... at the instruction that returns */
	bool sampling; /* each hit is logged */
	bool by_links; /* see trigger_config */
};

#define CALLS  200
#define ROUNDS 5
#define NEVER  3600000000000ull

/* This instruction is single-stepped under a probe, as is the return instruction after it. */
__attribute__((noinline, noipa)) static void hit_stepped(void)
{
	__asm__ volatile("test %eax, %eax");
}

/* The quickest of some rounds, for one call. */
static uint64_t time_calls(void (*call)(void))
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start_ns = clock__now_ns(), ns;

		for (int i = 0; i < CALLS; i++)
			call();
		ns = clock__now_ns() - start_ns;
		best = ns < best ? ns : best;
	}
	return best / CALLS;
}

/* The offset of its return instruction. */
static uint64_t return_at(void (*call)(void))
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)call;
	uint64_t at = 0;

	while (code[at] != 0xc3 && at < 16)
		at++;
	return at;
}

/* A descriptor; with by_links the trigger runs there already. */
static int open_probe(struct trigger *trigger, const struct hit_kind *kind, void (*call)(void),
		      enum trigger_probe what)
{
	const struct trigger_event event = {.kind = what};
	bool by_insn = what == TRIGGER_RETURN && kind->by_insn;
	struct uprobe_spec spec;
	uint64_t cookie;
	int program = trigger__program(trigger, &event, &cookie);
	int err = own_probe__spec_of(&spec, (uintptr_t)call + (by_insn ? return_at(call) : 0));

	spec.on_return = what == TRIGGER_RETURN && !by_insn;
	if (err)
		return err;
	return kind->by_links ? uprobe_link__open(&spec, program, cookie)
			      : uprobe_event__open(&spec);
}

static int attach(struct trigger *trigger, const struct hit_kind *kind, void (*call)(void),
		  int fds[static 2])
{
	fds[0] = open_probe(trigger, kind, call, TRIGGER_ENTRY);
	if (fds[0] < 0)
		return fds[0];
	if (kind->returns) {
		fds[1] = open_probe(trigger, kind, call, TRIGGER_RETURN);
		if (fds[1] < 0)
			return fds[1];
	}
	return kind->by_links ? 0 : trigger__attach(trigger, fds[0], fds[1]);
}

static int measure(const struct hit_kind *kind, uint64_t *ns)
{
	const struct trigger_config config = {
		.tgid = getpid(),
		.delay_thresh_ns = kind->returns ? 0 : NEVER,
		.duration_thresh_ns = kind->returns ? NEVER : 0,
		.returns_by_insn = kind->by_insn,
		.sampling = kind->sampling,
		.by_links = kind->by_links,
	};
	void (*call)(void) = kind->emulated ? own_probe__hit : hit_stepped;
	struct trigger *trigger = trigger__new(&config);
	int fds[2] = {-1, -1}, err = trigger ? 0 : -errno;
	uint64_t off_ns = time_calls(call), on_ns;

	if (!err)
		err = attach(trigger, kind, call, fds);
	on_ns = time_calls(call);
	if (trigger)
		trigger__detach(trigger);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	trigger__free(trigger);
	*ns = on_ns > off_ns ? on_ns - off_ns : 0;
	return err;
}

/*
 * Sets such a probe, with a trigger that never fires, in mtbpf itself, and stores in *ns how much
 * longer a call takes with it. Takes some tenths of a second. 0 or -errno; prints only at -v.
 */
static int measure_hit(const struct hit_kind *kind, uint64_t *ns)
{
	enum log_level level = log__level();
	int err;

	/* Errors are reported when the probe is set in the target. */
	if (level < LOG_VERBOSE)
		log__set_level(LOG_SILENT);
	err = measure(kind, ns);
	log__set_level(level);
	return err;
}

/* Measures the most expensive probe: one that is single-stepped costs most. */
void session__measure_hits(struct session *s)
{
	struct hit_kind kind = {.emulated = true,
				.returns = s->also.all.n || (session__measures_duration(s) &&
							     !probes__are_library(&s->probes)),
				.by_insn = s->gate.by_insn,
				.sampling = s->ops->samples,
				.by_links = s->gate.by_links};
	char text[UNITS_TEXT_SIZE];

	if (!s->gate.trigger || s->ops->steps)
		return;
	for (size_t i = 0; i < s->probes.all.n; i++)
		kind.emulated &= s->probes.all.v[i].site.emulated;
	for (size_t i = 0; i < s->also.all.n; i++)
		kind.emulated &= s->also.all.v[i].site.emulated;
	if (measure_hit(&kind, &s->overhead.cost.hit_ns))
		s->overhead.cost.hit_ns = 0;
	log__debug("a hit of the probe costs %s here",
		   units__format_duration(text, s->overhead.cost.hit_ns));
}

void session__say_cost(const struct session *s)
{
	const struct overhead *o = &s->overhead;
	char text[OVERHEAD_TEXT_SIZE], hit[UNITS_TEXT_SIZE];

	overhead__format(text, o);
	if (!*text && !o->cost.hit_ns)
		return;
	log__info("cost: %s%s%s%s", text, *text && o->cost.hit_ns ? "; and " : "",
		  o->cost.hit_ns ? "each hit of a probe " : "",
		  o->cost.hit_ns ? units__format_duration(hit, o->cost.hit_ns) : "");
}

static uint64_t cgroup_cpu_ns(const struct cgroup *cgroup)
{
	int fd = openat(cgroup->fd, "cpu.stat", O_RDONLY | O_CLOEXEC);
	unsigned long long us = 0;
	char text[64] = "";

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) > 0)
		sscanf(text, "usage_usec %llu", &us);
	close(fd);
	return us * 1000;
}

static uint64_t processes_cpu_ns(const struct session *s)
{
	const struct pid_set *pids = s->ops->pids ? s->ops->pids(s->source) : &s->pids;
	uint64_t ns = 0;

	for (size_t i = 0; pids && i < pids->n; i++) {
		struct timespec used;
		clockid_t clock;

		if (!clock_getcpuclockid(pids->v[i], &clock) && !clock_gettime(clock, &used))
			ns += (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
	}
	return ns;
}

static void count(struct session *s, struct overhead_counts *now)
{
	struct recorder_counts recorded = {0};
	struct mt_stats stats = {0};

	if (s->recorder)
		recorder__count(s->recorder, &recorded);
	if (s->gate.trigger && !trigger__stats(s->gate.trigger, &stats) && s->also.all.n)
		stats.hits += trigger__also_calls(s->gate.trigger);
	*now = (struct overhead_counts){
		.time_ns = clock__now_ns(),
		.cpu_ns = s->cgroup ? cgroup_cpu_ns(s->cgroup) : processes_cpu_ns(s),
		.switches = recorded.switches,
		.stacks = recorded.samples,
		.hits = stats.hits,
	};
}

/* Probes may take this share of the target's CPU time, or more for this many seconds. */
#define HITS_SHARE   0.2
#define HITS_SECONDS 2

static bool probes_are_dear(struct session *s)
{
	const struct sample_options *o = &s->options->sample;
	double most = (double)o->max_overhead_ppm / 1e6;

	if (overhead__hits_share(&s->overhead) > (most > HITS_SHARE ? most : HITS_SHARE))
		s->overhead.n_dear++;
	else
		s->overhead.n_dear = 0;
	return !o->insists && s->overhead.n_dear >= HITS_SECONDS;
}

static int refuse_probes(const struct session *s)
{
	const struct probe *stepped = probes__stepped(s->probes.all.n ? &s->probes : &s->also);
	char each[UNITS_TEXT_SIZE];

	status__end();
	log__error("the probe of %s is removed: %llu hits/s x %s take %.0f %% of the target's CPU",
		   s->probes.all.n ? s->probes.name : s->also.name,
		   (unsigned long long)s->overhead.in_second.hits,
		   units__format_duration(each, s->overhead.cost.hit_ns),
		   100 * overhead__hits_share(&s->overhead));
	log__hint("choose a function that is called less often, such as its caller%s%s; "
		  "-max-overhead none insists",
		  s->also.all.n ? ", or fewer with -also" : "",
		  stepped && !stepped->site.emulated
			  ? ", or a place where no instruction is single-stepped (NAME+0x10)"
			  : "");
	return -EDQUOT;
}

int session__keep_cost(struct session *s, char text[static OVERHEAD_TEXT_SIZE])
{
	const struct sample_options *o = &s->options->sample;
	struct overhead_counts now;

	text[0] = '\0';
	if (s->ops->steps)
		return 0;
	count(s, &now);
	if (overhead__count(&s->overhead, &now)) {
		overhead__format(text, &s->overhead);
		if (probes_are_dear(s))
			return refuse_probes(s);
	}
	if (s->ops->set_rate && o->max_overhead_ppm && overhead__look(&s->overhead, o, &s->pids))
		s->ops->set_rate(s->source, s->overhead.hz);
	return 0;
}

/* A call of twice the threshold lies in it. */
static uint64_t needed_ns(const struct session *s)
{
	uint64_t threshold_ns = s->progress.threshold_ns;

	return s->ops->samples && threshold_ns != UINT64_MAX ? 2 * threshold_ns : 0;
}

/* Of a record without its copy of the stack; and what each of a switch's two has in the log. */
#define RECORD_BYTES 256
/* A record with the calls that the CPU noted has this size, and no copy. */
#define CALLS_BYTES 1024

static double clock_bytes(const struct session *s, double stacks)
{
	return stacks * (s->unwind.calls ? CALLS_BYTES : RECORD_BYTES + s->unwind.stack);
}

static double switch_bytes(const struct session *s)
{
	return (double)s->overhead.in_second.switches * (RECORD_BYTES + s->unwind.stack);
}

/* A second: of the ring that fills first, if there are two. */
static double bytes_in_ring(const struct session *s, double clock)
{
	double switches = switch_bytes(s);

	if (!session__has_stack_rings(s))
		return clock + switches;
	return clock > switches ? clock : switches;
}

/* Of that, the part that goes with the rate of the clock. */
static double clock_share(const struct session *s, double clock)
{
	double switches = switch_bytes(s);

	if (clock <= 0 || (session__has_stack_rings(s) && switches > clock))
		return 0;
	return session__has_stack_rings(s) ? 1 : clock / (clock + switches);
}

/* By itself it takes a part of -max-memory: locked pages are missing elsewhere. */
#define GROWTH_SHARE 4
#define RING_LEAST   (64u << 10)

/* A CPU's ring, its log, and its ring of stacks, rounded: how many times -snapshot-size they take.
 */
static unsigned int parts(const struct session *s)
{
	return (s->unwind.stack ? 1 : 2) + session__has_stack_rings(s);
}

/* What may be a CPU's ring, with its log. */
static uint64_t most_for(const struct session *s, uint64_t memory)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return memory / (cpus > 0 ? (uint64_t)cpus : 1) / parts(s) / 8 * 7;
}

static void warn_short(const struct session *s, const struct lookback_need *l)
{
	char back[UNITS_TEXT_SIZE], threshold[UNITS_TEXT_SIZE], wanted[UNITS_TEXT_SIZE];
	unsigned long long mib = (l->size >> 20) + 1;
	unsigned int hz = overhead__rate_to_look_back(l);
	char rate[64] = "";

	units__format_duration(back, l->back_ns);
	units__format_duration(threshold, s->progress.threshold_ns);
	log__warn(
		"the rings look back some %s, less than twice the threshold of %s: of a call that "
		"is that slow the begin may be missing",
		back, threshold);
	if (hz)
		snprintf(rate, sizeof(rate), "-sample-rate %u would do, or ", hz);
	if (l->size <= most_for(s, s->options->max_memory))
		log__hint("%s-snapshot-size %lluM%s", rate, mib, hz ? "" : " would do");
	else
		log__hint(
			"%s-snapshot-size %lluM and -max-memory %s%s%s", rate, mib,
			units__format_size(wanted, (parts(s) + 1) * (l->size + (1u << 20)) *
							   (uint64_t)sysconf(_SC_NPROCESSORS_ONLN)),
			hz ? "" : " would do",
			s->unwind.stack ? "; or -unwind fp, which copies no stacks" : "");
}

/* Fewer stacks by the clock, if that makes the rings look back far enough; else a warning. */
static bool lower_rate(struct session *s, const struct lookback_need *l)
{
	unsigned int hz =
		s->options->sample.rate == SAMPLE_RATE_AUTO ? overhead__rate_to_look_back(l) : 0;
	struct overhead *o = &s->overhead;
	char threshold[UNITS_TEXT_SIZE];

	s->is_short_said = !hz;
	if (!hz) {
		warn_short(s, l);
		return false;
	}
	log__info("sample: %u stacks a second instead of %u: then the rings look back twice the "
		  "threshold of %s (-sample-rate %u insists)",
		  hz, o->hz, units__format_duration(threshold, s->progress.threshold_ns), o->hz);
	o->hz = o->first_hz = o->most_hz = hz;
	return true;
}

/* The source halves its rings until they fit: the logs beside them shrink with them. */
static void fit_memory(struct session *s)
{
	char text[UNITS_TEXT_SIZE];
	uint64_t wanted = s->snapshot_size;

	while (s->snapshot_size > RING_LEAST &&
	       s->snapshot_size > most_for(s, s->options->max_memory))
		s->snapshot_size /= 2;
	if (s->snapshot_size != wanted)
		log__info("sample: the CPUs share -max-memory: a ring of %s each",
			  units__format_size(text, s->snapshot_size));
}

void session__fit_lookback(struct session *s)
{
	uint64_t most = most_for(s, s->options->max_memory / GROWTH_SHARE);
	uint64_t need_ns = needed_ns(s);
	struct lookback_need l = {.hz = s->overhead.hz, .need_ns = need_ns};
	double clock = clock_bytes(s, s->overhead.hz);

	l.size = (uint64_t)(bytes_in_ring(s, clock) * (double)need_ns / 1e9);
	s->snapshot_size = s->options->snapshot_size;
	/* What was asked for stays. */
	if (s->options->snapshot_size == SNAPSHOT_SIZE_DEFAULT)
		while (s->snapshot_size < l.size && 2 * s->snapshot_size <= most)
			s->snapshot_size *= 2;
	if (s->ops->samples)
		fit_memory(s);
	if (l.size <= s->snapshot_size)
		return;
	l.back_ns = (uint64_t)((double)need_ns * (double)s->snapshot_size / (double)l.size);
	l.clock_share = clock_share(s, clock);
	lower_rate(s, &l);
}

void session__check_lookback(struct session *s)
{
	uint64_t need_ns = needed_ns(s);
	struct lookback_need l = {.hz = s->overhead.hz, .need_ns = need_ns};
	double clock;

	if (!need_ns || s->is_short_said || !s->ops->lookback_ns)
		return;
	l.back_ns = s->ops->lookback_ns(s->source);
	if (s->recorder && recorder__lookback_ns(s->recorder) < l.back_ns)
		l.back_ns = recorder__lookback_ns(s->recorder);
	if (l.back_ns >= need_ns)
		return;
	l.size = (uint64_t)((double)s->snapshot_size * (double)need_ns / (double)(l.back_ns + 1));
	/* As it was in the last second. */
	clock = clock_bytes(s, (double)s->overhead.in_second.stacks);
	l.clock_share = clock_share(s, clock);
	status__end();
	if (lower_rate(s, &l))
		s->ops->set_rate(s->source, s->overhead.hz);
}
