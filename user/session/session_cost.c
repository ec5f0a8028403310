// SPDX-License-Identifier: MIT
/*
 * The cost of a session's probes and stacks, measured before it records and while it waits, the
 * sampling rate that keeps it below -max-overhead, and the size of the rings.
 */
#include "session/session_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/sample/sample_ring.h"
#include "capture/probe/uprobe_event.h"
#include "trigger/recorder.h"
#include "trigger/trigger.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"

#define LOAD_MS 200
#define OWN_LOG (64u << 10)
/* The default rate is lowered to cost at most this: timer interrupts are slow on some hypervisors.
 */
#define DEFAULT_PPM 50000

unsigned int overhead__rate(const struct sample_options *o, const struct sample_cost *cost,
			    const struct sample_load *load)
{
	bool is_asked = o->rate != SAMPLE_RATE_AUTO;
	unsigned int wanted = is_asked ? (unsigned int)o->rate : SAMPLE_RATE_DEFAULT, hz;

	if (is_asked && !o->max_overhead_ppm)
		return wanted;
	/* Without -max-overhead only the cost of stacks counts, not that of switches and hits. */
	hz = o->max_overhead_ppm ? sample_cost__rate(cost, load, o->max_overhead_ppm)
				 : sample_cost__rate(cost, &(struct sample_load){0}, DEFAULT_PPM);
	if (hz > wanted)
		return wanted;
	return hz < SAMPLE_RATE_LEAST ? SAMPLE_RATE_LEAST : hz;
}

static bool is_kept(const struct sample_options *o, const struct sample_cost *cost,
		    const struct sample_load *load)
{
	return sample_cost__rate(cost, load, o->max_overhead_ppm) >= SAMPLE_RATE_LEAST;
}

static void warn_broken(const struct sample_options *o)
{
	log__warn("-max-overhead %s cannot be met: stacks at the lowest rate (%d per second), "
		  "context switches and hits together cost more; recording goes on at that rate",
		  o->max_overhead, SAMPLE_RATE_LEAST);
}

void overhead__say_rate(const struct overhead *overhead, const struct sample_options *o)
{
	bool is_lowered = o->rate == SAMPLE_RATE_AUTO && overhead->hz < SAMPLE_RATE_DEFAULT;
	const struct sample_cost *cost = &overhead->cost;
	double percent = 100 * sample_cost__share(cost, overhead->hz);
	/* Otherwise the lookback or the kernel's limit decided, which was said. */
	bool by_cost = !overhead->most_hz && !overhead->limit_hz;
	char sample[UNITS_TEXT_SIZE];

	units__format_duration(sample, cost->sample_ns);
	if (!overhead->is_measured)
		return;
	if (!cost->sample_ns)
		log__info(
			"sample: %u stacks per second; what one costs is not known, because other "
			"work on this machine disturbed the measurement",
			overhead->hz);
	else if (by_cost && o->max_overhead_ppm)
		log__info("sample: a stack costs %s here, a context switch %s: %u samples per "
			  "second, for -max-overhead %s",
			  sample, DURATION(cost->switch_ns), overhead->hz, o->max_overhead);
	else if (by_cost && is_lowered)
		log__info("sample: %u stacks per second, because each costs %s here: %.1f %% of a "
			  "thread's time (-sample-rate %u overrides this)",
			  overhead->hz, sample, percent, SAMPLE_RATE_DEFAULT);
	else
		log__info("sample: %u stacks per second, each costs %s here: %.1f %% of a thread's "
			  "time",
			  overhead->hz, sample, percent);
}

static void set_recorder(void *ctx, bool on)
{
	struct recorder *recorder = ctx;

	if (on)
		recorder__begin(recorder);
	else
		recorder__stop(recorder);
}

/* Measures the cost of samples on a thread of mtbpf, with a recorder like that of the recording. */
static int measure(uint32_t stack, bool kernel, struct sample_cost *cost)
{
	const struct recorder_config config = {.tgid = getpid(),
					       .log_size = OWN_LOG,
					       .stacks_size = kernel ? 0 : OWN_LOG,
					       .stack_copy = stack};
	struct recorder *recorder = recorder__new(&config);
	struct sample_kernel half = {.set = set_recorder, .ctx = recorder};
	int err;

	if (!recorder)
		return sample_cost__measure(stack, kernel, NULL, cost);
	half.gate = recorder__gate(recorder);
	half.switch_gate = recorder__switch_gate(recorder);
	half.has_stacks = !kernel;
	err = sample_cost__measure(stack, kernel, &half, cost);
	recorder__free(recorder);
	return err;
}

static int measure_load(const struct pid_set *pids, struct sample_load *load)
{
	int err = 0;

	*load = (struct sample_load){0};
	for (size_t i = 0; i < pids->n; i++) {
		struct sample_load one;

		err = sample_load__measure(pids->v[i], LOAD_MS / (unsigned int)pids->n + 1, &one);
		if (err)
			continue;
		load->cpu_ns += one.cpu_ns * pids->n;
		load->switches += one.switches * pids->n;
	}
	return load->cpu_ns ? 0 : err;
}

int overhead__refuse(const struct sample_options *o, int err)
{
	log__error("cannot measure what a sample costs: %s",
		   err == -EBUSY ? "other work on this machine disturbs the measurement"
				 : strerror(-err));
	if (o->rate == SAMPLE_RATE_AUTO)
		log__hint("set the rate with -sample-rate HZ, which needs no measurement, and "
			  "leave out -max-overhead");
	else
		log__hint("leave out -max-overhead: -sample-rate %d needs no measurement", o->rate);
	return err;
}

int overhead__measure(const struct sample_options *o, uint32_t stack, bool kernel,
		      const struct pid_set *pids, struct overhead *overhead)
{
	struct sample_load load = {0};
	unsigned int wanted;
	int err = measure(stack, kernel, &overhead->cost);

	/* Without -max-overhead the costs are only shown, and may stay unknown. */
	if (err == -EBUSY && !o->max_overhead_ppm)
		err = 0;
	if (!err && pids->n)
		err = measure_load(pids, &load);
	if (err && o->max_overhead_ppm)
		return overhead__refuse(o, err);
	wanted = overhead__rate(o, &overhead->cost, &load);
	overhead->hz = overhead->first_hz = sample_rate__limit(wanted);
	overhead->limit_hz = overhead->hz < wanted ? overhead->hz : 0;
	if (err)
		return 0;
	overhead->in_second = (struct overhead_counts){
		.cpu_ns = load.cpu_ns * 1000 / LOAD_MS,
		.switches = load.switches * 1000 / LOAD_MS,
		.stacks = (uint64_t)((double)load.cpu_ns / LOAD_MS / 1e6 * overhead->hz),
	};
	overhead->is_broken = o->max_overhead_ppm && !is_kept(o, &overhead->cost, &load);
	if (overhead->is_broken)
		warn_broken(o);
	overhead->is_measured = true;
	return 0;
}

/* Thresholds below what this many stacks cost are too near to the cost of one. */
#define NEAR_STACKS 2

void overhead__say_near(struct overhead *o, uint64_t threshold_ns)
{
	char threshold[UNITS_TEXT_SIZE], sample[UNITS_TEXT_SIZE];

	if (o->is_near_told || !threshold_ns || threshold_ns >= NEAR_STACKS * o->cost.sample_ns)
		return;
	o->is_near_told = true;
	log__warn("a call may exceed the threshold of %s only because a stack was taken during "
		  "the call, which takes %s here",
		  units__format_duration(threshold, threshold_ns),
		  units__format_duration(sample, o->cost.sample_ns));
	if (o->hz / 10 >= SAMPLE_RATE_LEAST)
		log__hint("use -sample-rate %u: with fewer stacks this is less frequent",
			  o->hz / 10);
}

/* Rate changes below this many percent are ignored. */
#define NEAR 20

bool overhead__take(struct overhead *o, const struct sample_options *options,
		    const struct sample_load *now)
{
	bool is_known = o->seen.cpu_ns && now->cpu_ns >= o->seen.cpu_ns &&
			now->switches >= o->seen.switches;
	unsigned int hz;

	/* A decaying sum: one quiet second does not raise the rate at once. */
	if (is_known) {
		o->recent.cpu_ns = o->recent.cpu_ns / 2 + now->cpu_ns - o->seen.cpu_ns;
		o->recent.switches = o->recent.switches / 2 + now->switches - o->seen.switches;
		o->recent.hits = o->recent.hits / 2 + now->hits - o->seen.hits;
		o->recent.go_waits = o->recent.go_waits / 2 + now->go_waits - o->seen.go_waits;
	}
	o->seen = *now;
	if (!is_known || !o->recent.cpu_ns)
		return false;
	hz = overhead__rate(options, &o->cost, &o->recent);
	if (o->most_hz && hz > o->most_hz)
		hz = o->most_hz;
	if (o->limit_hz && hz > o->limit_hz)
		hz = o->limit_hz;
	if (!o->is_broken && !is_kept(options, &o->cost, &o->recent)) {
		o->is_broken = true;
		warn_broken(options);
	}
	if (!(hz * 100ull > o->hz * (100ull + NEAR) || hz * (100ull + NEAR) < o->hz * 100ull))
		return false;
	log__debug("sample: %u stacks per second from now on, for -max-overhead %s", hz,
		   options->max_overhead);
	o->hz = hz;
	return true;
}

/* At least this many stacks must be taken during the threshold's time. */
#define LEAST_STACKS 50
/* A margin, since sampling periods vary a little. */
#define LOOKBACK_RESERVE 1.1

unsigned int overhead__rate_to_look_back(const struct lookback_need *need)
{
	double fits = (double)need->back_ns / (double)need->need_ns / LOOKBACK_RESERVE;
	double left = fits - (1 - need->clock_share);
	double rate = left > 0 ? need->hz * left / need->clock_share : 0;

	if (rate < SAMPLE_RATE_LEAST || rate * (double)need->need_ns / 2 < LEAST_STACKS * 1e9)
		return 0;
	return (unsigned int)rate;
}

void overhead__say(const struct overhead *o, const struct sample_options *options)
{
	if (o->hz != o->first_hz)
		log__info("sample: %u stacks per second at the end, for -max-overhead %s", o->hz,
			  options->max_overhead);
}

/* The CPU time that the target has used. */
static uint64_t target_cpu_ns(const struct session *s)
{
	const struct pid_set *pids = s->ops->pids ? s->ops->pids(s->source) : &s->pids;
	unsigned long long us = 0;
	char text[64] = "";
	uint64_t ns = 0;

	if (s->cgroup) {
		_cleanup_close_ int fd = openat(s->cgroup->fd, "cpu.stat", O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
			sscanf(text, "usage_usec %llu", &us);
		return us * 1000;
	}
	for (size_t i = 0; pids && i < pids->n; i++) {
		struct timespec used;
		clockid_t clock;

		if (!clock_getcpuclockid(pids->v[i], &clock) && !clock_gettime(clock, &used))
			ns += (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
	}
	return ns;
}

static uint64_t rate_of(uint64_t now, uint64_t before, uint64_t span_ns)
{
	return now > before ? (uint64_t)((double)(now - before) * 1e9 / (double)span_ns) : 0;
}

/*
 * Reads the counters. Returns false the first time, and if the target has used no CPU time since
 * the last time.
 */
static bool take_counts(struct session *s)
{
	struct overhead *o = &s->overhead;
	const struct overhead_counts before = o->counted;
	struct recorder_counts recorded = {0};
	struct mt_stats stats = {0};
	struct overhead_counts now;
	uint64_t span_ns;

	if (s->recorder)
		recorder__count(s->recorder, &recorded);
	if (s->gate.trigger && !trigger__stats(s->gate.trigger, &stats) && s->also.all.n)
		stats.hits += trigger__also_calls(s->gate.trigger);
	now = (struct overhead_counts){
		.go_waits = s->gate.go_waits ? trigger__go_wait_hits(s->gate.trigger) : 0,
		.time_ns = clock__now_ns(),
		.cpu_ns = target_cpu_ns(s),
		.switches = recorded.switches,
		.stacks = recorded.samples,
		.hits = stats.hits,
	};
	o->counted = now;
	span_ns = now.time_ns - before.time_ns;
	if (!before.time_ns || !span_ns)
		return false;
	o->in_second = (struct overhead_counts){
		.cpu_ns = rate_of(now.cpu_ns, before.cpu_ns, span_ns),
		.switches = rate_of(now.switches, before.switches, span_ns),
		.stacks = rate_of(now.stacks, before.stacks, span_ns),
		.hits = rate_of(now.hits, before.hits, span_ns),
		.go_waits = rate_of(now.go_waits, before.go_waits, span_ns)};
	return o->in_second.cpu_ns;
}

static double share_of(const struct overhead *o, uint64_t n, uint64_t each_ns)
{
	return o->in_second.cpu_ns ? (double)n * (double)each_ns / (double)o->in_second.cpu_ns : 0;
}

/* The share of the target's CPU time that the probes' hits take; 1 is all of it. */
static double hits_share(const struct overhead *o)
{
	return share_of(o, o->in_second.hits, o->cost.hit_ns);
}

static double go_waits_share(const struct overhead *o)
{
	return share_of(o, o->in_second.go_waits, o->cost.go_wait_ns);
}

/*
 * "1200 switches/s x 1.5 us + 998 stacks/s x 2.1 us + 500 hits/s x 700 ns = 0.4 % of the target's
 * CPU"; terms that are 0 are left out, and the sum if the cost of something is not known. Returns
 * buf.
 */
static const char *format_cost(char buf[static OVERHEAD_TEXT_SIZE], const struct overhead *o)
{
	const struct {
		const char *what;
		uint64_t n, each_ns;
	} parts[] = {{"switches", o->in_second.switches, o->cost.switch_ns},
		     {"stacks", o->in_second.stacks, o->cost.sample_ns},
		     {"hits", o->in_second.hits, o->cost.hit_ns},
		     {"waits of goroutines", o->in_second.go_waits, o->cost.go_wait_ns}};
	bool is_whole = true;
	int n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		is_whole = is_whole && (!parts[i].n || parts[i].each_ns);
		if (parts[i].n && parts[i].each_ns)
			n += snprintf(buf + n, OVERHEAD_TEXT_SIZE - (size_t)n,
				      "%s%" PRIu64 " %s/s x %s", n ? " + " : "", parts[i].n,
				      parts[i].what, DURATION(parts[i].each_ns));
	}
	if (n && is_whole)
		snprintf(buf + n, OVERHEAD_TEXT_SIZE - (size_t)n, " = %.1f %% of the target's CPU",
			 100 * (share_of(o, o->in_second.switches, o->cost.switch_ns) +
				share_of(o, o->in_second.stacks, o->cost.sample_ns) +
				hits_share(o) + go_waits_share(o)));
	return buf;
}

#define CALLS  200
#define ROUNDS 5

/* This instruction is single-stepped under a probe, as is the return instruction after it. */
__attribute__((noinline, noipa)) static void hit_stepped(void)
{
	__asm__ volatile("test %eax, %eax");
}

/* Time per call in the quickest of some rounds, in ns. */
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

/*
 * Opens a probe on the function `call`. Returns a descriptor, or -errno; with by_links the program
 * is attached already.
 */
static int open_probe(struct trigger *trigger, const struct trigger_config *config,
		      void (*call)(void), enum trigger_probe what)
{
	const struct trigger_event event = {.kind = what};
	const uint8_t *code = (const uint8_t *)(uintptr_t)call;
	bool by_insn = what == TRIGGER_RETURN && config->returns_by_insn;
	struct uprobe_spec spec;
	uint64_t cookie, at = 0;
	int err, program = trigger__program(trigger, &event, &cookie);

	/* Finds the function's return instruction. */
	while (by_insn && code[at] != 0xc3 && at < 16)
		at++;
	err = own_probe__spec_of(&spec, (uintptr_t)call + at);
	spec.on_return = what == TRIGGER_RETURN && !by_insn;
	if (err)
		return err;
	return config->by_links ? uprobe_link__open(&spec, program, cookie)
				: uprobe_event__open(&spec);
}

/*
 * Sets probes as `config` describes on a function of mtbpf itself, and stores in *ns how much
 * longer a call takes with them; 0 if they cannot be set. Takes some tenths of a second.
 */
static void measure_hit(const struct trigger_config *config, void (*call)(void), uint64_t *ns)
{
	struct trigger *trigger = trigger__new(config);
	int fds[2] = {-1, -1}, err = trigger ? 0 : -errno;
	uint64_t off_ns = time_calls(call), on_ns;

	if (!err) {
		fds[0] = open_probe(trigger, config, call, TRIGGER_ENTRY);
		err = fds[0] < 0 ? fds[0] : 0;
	}
	if (!err && trigger__needs_return(config)) {
		fds[1] = open_probe(trigger, config, call, TRIGGER_RETURN);
		err = fds[1] < 0 ? fds[1] : 0;
	}
	if (!err && !config->by_links)
		err = trigger__attach(trigger, fds[0], fds[1]);
	on_ns = time_calls(call);
	if (trigger)
		trigger__detach(trigger);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	trigger__free(trigger);
	*ns = !err && on_ns > off_ns ? on_ns - off_ns : 0;
}

/*
 * Measures a probe like the most expensive one, single-stepped or not, with a trigger that never
 * fires. It only counts, so that the verifier need not look at what a trigger does when it fires.
 */
void session__measure_hits(struct session *s)
{
	bool returns = s->also.all.n || (session__has_ends(s) && !probes__are_library(&s->probes));
	const struct trigger_config config = {
		.tgid = getpid(),
		.count_only = true,
		.watch_duration = returns,
		.returns_by_insn = s->gate.by_insn,
		.sampling = s->ops->samples,
		.by_links = s->gate.by_links,
	};
	bool stepped = (s->probes.all.n && !probes__stepped(&s->probes)->site.emulated) ||
		       (s->also.all.n && !probes__stepped(&s->also)->site.emulated);
	enum log_level level = log__level();

	/* The functions of Go's runtime are probed at an instruction that the kernel emulates. */
	const struct trigger_config entries_only = {.tgid = getpid(),
						    .count_only = true,
						    .sampling = s->ops->samples,
						    .by_links = s->gate.by_links};

	/* Probes on system calls lack specs: they cost less than any uprobe. */
	if (!s->gate.trigger || s->ops->steps || !s->gate.specs.n)
		return;
	/* Errors are reported when the probe is set in the target. */
	if (level < LOG_VERBOSE)
		log__set_level(LOG_SILENT);
	measure_hit(&config, stepped ? hit_stepped : own_probe__hit, &s->overhead.cost.hit_ns);
	if (s->gate.go_waits)
		measure_hit(&entries_only, own_probe__hit, &s->overhead.cost.go_wait_ns);
	log__set_level(level);
	log__debug("a hit of the probe costs %s here", DURATION(s->overhead.cost.hit_ns));
}

void session__say_cost(const struct session *s)
{
	const struct overhead *o = &s->overhead;
	char text[OVERHEAD_TEXT_SIZE];

	format_cost(text, o);
	if (!*text && !o->cost.hit_ns)
		return;
	log__info("cost: %s%s%s%s", text, *text && o->cost.hit_ns ? "; and " : "",
		  o->cost.hit_ns ? "each hit of a probe " : "",
		  o->cost.hit_ns ? DURATION(o->cost.hit_ns) : "");
}

/*
 * Probes that take more than this share of the target's CPU time for this many seconds are removed.
 */
#define HITS_SHARE   0.2
#define HITS_SECONDS 2

/*
 * Removes the probes that cost too much: those on Go's runtime, without which the trigger works, or
 * the trigger's own, which ends the recording with -EDQUOT.
 */
static int remove_probes(struct session *s)
{
	const struct probe *stepped = probes__stepped(s->probes.all.n ? &s->probes : &s->also);
	bool is_both = s->probes.all.n && s->also.all.n;
	struct overhead *o = &s->overhead;

	log__end_line();
	if (go_waits_share(o) > hits_share(o)) {
		log__warn("the probes on Go's runtime are removed: %llu hits/s x %s take %.0f %% "
			  "of the target's CPU; what goroutines wait for is not recorded any more",
			  (unsigned long long)o->in_second.go_waits, DURATION(o->cost.go_wait_ns),
			  100 * go_waits_share(o));
		log__hint("-max-overhead none keeps these probes");
		gate__stop_go_waits(&s->gate);
		o->n_dear = 0;
		return 0;
	}
	log__error("the probes of %s%s%s are removed: %llu hits/s x %s take %.0f %% of the "
		   "target's CPU",
		   s->probes.all.n ? s->probes.shown : "", is_both ? " and " : "",
		   s->also.all.n ? s->also.shown : "", (unsigned long long)o->in_second.hits,
		   DURATION(o->cost.hit_ns), 100 * hits_share(o));
	log__hint("choose a function that is called less often, such as its caller%s%s; "
		  "-max-overhead none keeps the probe",
		  s->also.all.n ? ", or fewer with -also" : "",
		  stepped && !stepped->site.emulated
			  ? ", or an instruction that is not single-stepped (NAME+0x10)"
			  : "");
	return -EDQUOT;
}

int session__keep_cost(struct session *s, char text[static OVERHEAD_TEXT_SIZE])
{
	const struct sample_options *options = &s->options->sample;
	struct overhead *o = &s->overhead;
	double most = (double)options->max_overhead_ppm / 1e6;
	struct sample_load load;

	text[0] = '\0';
	if (s->ops->steps)
		return 0;
	if (take_counts(s)) {
		format_cost(text, o);
		o->n_dear =
			hits_share(o) + go_waits_share(o) > (most > HITS_SHARE ? most : HITS_SHARE)
				? o->n_dear + 1
				: 0;
		if (!options->insists && o->n_dear >= HITS_SECONDS)
			return remove_probes(s);
	}
	if (!s->ops->set_rate || !options->max_overhead_ppm)
		return 0;
	/* Processes that have ended do not count. */
	load = (struct sample_load){.hits = o->counted.hits, .go_waits = o->counted.go_waits};
	for (size_t i = 0; i < s->pids.n; i++) {
		struct sample_load one;

		if (!sample_load__read(s->pids.v[i], &one)) {
			load.cpu_ns += one.cpu_ns;
			load.switches += one.switches;
		}
	}
	if (overhead__take(o, options, &load))
		s->ops->set_rate(s->source, o->hz);
	return 0;
}

/* The size of a sample without its copy of the stack. */
#define RECORD_BYTES 256
/* The size of a sample with the CPU's call stack (LBR) and no copy. */
#define CALLS_BYTES 1024

/* `stacks`: timed samples per second. */
static struct lookback_need need_of(const struct session *s, double stacks)
{
	double clock = stacks * (s->unwind.calls ? CALLS_BYTES : RECORD_BYTES + s->unwind.stack);
	double switches = (double)s->overhead.in_second.switches * (RECORD_BYTES + s->unwind.stack);
	struct lookback_need need = {.hz = s->overhead.hz};
	double bytes; /* per second, in the ring; with two rings, in the one that fills first */

	need.threshold_ns = s->progress.threshold_ns == UINT64_MAX ? 0 : s->progress.threshold_ns;
	if (s->options->limits.stall_thresh_ns > need.threshold_ns)
		need.threshold_ns = s->options->limits.stall_thresh_ns;
	/* The lookback must cover a call that takes twice the threshold. */
	need.need_ns = s->ops->samples ? 2 * need.threshold_ns : 0;
	if (session__has_stack_rings(s)) {
		bytes = clock > switches ? clock : switches;
		need.clock_share = clock > 0 && switches <= clock ? 1 : 0;
	} else {
		bytes = clock + switches;
		need.clock_share = clock > 0 ? clock / bytes : 0;
	}
	need.size = (uint64_t)(bytes * (double)need.need_ns / 1e9);
	return need;
}

/* A ring that grows unasked takes at most 1/4 of -max-memory: locked pages cannot be swapped. */
#define GROWTH_SHARE 4
#define RING_LEAST   (64u << 10)

/* Size of one CPU's rings (samples, log, stacks) in units of the ring size, rounded down. */
static unsigned int parts(const struct session *s)
{
	return (s->unwind.stack ? 1 : 2) + session__has_stack_rings(s);
}

/* The largest ring size with which all rings of all CPUs fit into the memory. */
static uint64_t most_for(const struct session *s, uint64_t memory)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return memory / (cpus > 0 ? (uint64_t)cpus : 1) / parts(s) / 8 * 7;
}

/* Lowers the rate if that makes the rings look back far enough; otherwise warns. */
static bool lower_rate(struct session *s, const struct lookback_need *l)
{
	bool is_chosen = s->options->sample.rate != SAMPLE_RATE_AUTO;
	unsigned int hz = overhead__rate_to_look_back(l);
	unsigned long long mib = (l->size >> 20) + 1;
	struct overhead *o = &s->overhead;
	char back[UNITS_TEXT_SIZE], rate[64] = "";

	s->is_short_said = is_chosen || !hz;
	if (!s->is_short_said) {
		log__info("sample: %u stacks per second instead of %u, so that the rings look back "
			  "twice the threshold of %s (-sample-rate %u overrides this)",
			  hz, o->hz, DURATION(l->threshold_ns), o->hz);
		o->hz = o->first_hz = o->most_hz = hz;
		return true;
	}
	units__format_duration(back, l->back_ns);
	log__warn("the rings look back about %s, less than twice the threshold of %s: the begin of "
		  "such a slow call may be missing",
		  back, DURATION(l->threshold_ns));
	if (hz)
		snprintf(rate, sizeof(rate), "-sample-rate %u, or ", hz);
	if (l->size <= most_for(s, s->options->max_memory))
		log__hint("use %s-snapshot-size %lluM", rate, mib);
	else
		log__hint("use %s-snapshot-size %lluM and -max-memory %lluM%s", rate, mib,
			  (parts(s) + 1) * (mib + 1) *
				  (unsigned long long)sysconf(_SC_NPROCESSORS_ONLN),
			  s->unwind.stack ? "; or -unwind fp, which copies no stacks" : "");
	return false;
}

void session__fit_lookback(struct session *s)
{
	uint64_t most = most_for(s, s->options->max_memory / GROWTH_SHARE), wanted;
	struct lookback_need l = need_of(s, s->overhead.hz);

	s->snapshot_size = s->options->snapshot_size;
	/* A size that the user asked for does not change. */
	if (s->options->snapshot_size == SNAPSHOT_SIZE_DEFAULT)
		while (s->snapshot_size < l.size && 2 * s->snapshot_size <= most)
			s->snapshot_size *= 2;
	/* The source halves its rings until all fit: the logs must shrink as well. */
	wanted = s->snapshot_size;
	while (s->ops->samples && s->snapshot_size > RING_LEAST &&
	       s->snapshot_size > most_for(s, s->options->max_memory))
		s->snapshot_size /= 2;
	if (s->snapshot_size != wanted)
		log__info("sample: rings of %s per CPU, to stay within -max-memory",
			  BYTES(s->snapshot_size));
	if (l.size <= s->snapshot_size)
		return;
	l.back_ns = (uint64_t)((double)l.need_ns * (double)s->snapshot_size / (double)l.size);
	lower_rate(s, &l);
}

void session__check_lookback(struct session *s)
{
	/* The size that the rings need at the rate of stacks in the last second. */
	struct lookback_need l = need_of(s, (double)s->overhead.in_second.stacks);

	if (!l.need_ns || s->is_short_said || !s->ops->lookback_ns)
		return;
	l.back_ns = s->ops->lookback_ns(s->source);
	if (s->recorder && recorder__lookback_ns(s->recorder) < l.back_ns)
		l.back_ns = recorder__lookback_ns(s->recorder);
	if (l.back_ns >= l.need_ns)
		return;
	l.size = (uint64_t)((double)s->snapshot_size * (double)l.need_ns / (double)(l.back_ns + 1));
	log__end_line();
	if (lower_rate(s, &l))
		s->ops->set_rate(s->source, s->overhead.hz);
}
