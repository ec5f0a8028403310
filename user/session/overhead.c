// SPDX-License-Identifier: MIT
#include "session/overhead.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trigger/recorder.h"
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
	log__warn("-max-overhead %s cannot be met: the minimum of %d samples per second, context "
		  "switches and hits cost more",
		  o->max_overhead, SAMPLE_RATE_LEAST);
}

static void say_rate(const struct sample_options *o, const struct sample_cost *cost,
		     unsigned int hz)
{
	char sample[UNITS_TEXT_SIZE];
	bool is_lowered = o->rate == SAMPLE_RATE_AUTO && hz < SAMPLE_RATE_DEFAULT;
	double percent = 100 * sample_cost__share(cost, hz);

	units__format_duration(sample, cost->sample_ns);
	if (!cost->sample_ns)
		log__info(
			"sample: %u stacks per second; what one costs is not known, because other "
			"work on this machine disturbed the measurement",
			hz);
	else if (o->max_overhead_ppm)
		log__info("sample: a stack costs %s here, a context switch %s: %u samples per "
			  "second, for -max-overhead %s",
			  sample, DURATION(cost->switch_ns), hz, o->max_overhead);
	else if (is_lowered)
		log__info("sample: %u stacks per second, because each costs %s here: %.1f %% of a "
			  "thread's time (-sample-rate %u overrides this)",
			  hz, sample, percent, SAMPLE_RATE_DEFAULT);
	else
		log__info("sample: %u stacks per second, each costs %s here: %.1f %% of a thread's "
			  "time",
			  hz, sample, percent);
}

static void set_recorder(void *ctx, bool on)
{
	struct recorder *recorder = ctx;

	if (on)
		recorder__begin(recorder);
	else
		recorder__stop(recorder);
}

/* Measures on a thread of mtbpf, with a recorder like that of the recording. */
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

int overhead__measure(const struct sample_options *o, uint32_t stack, bool kernel,
		      const struct pid_set *pids, struct overhead *overhead)
{
	struct sample_load load = {0};
	int err = measure(stack, kernel, &overhead->cost);

	/* Without -max-overhead the costs are only shown, and may stay unknown. */
	if (err == -EBUSY && !o->max_overhead_ppm)
		err = 0;
	if (!err && pids->n)
		err = measure_load(pids, &load);
	if (err && o->max_overhead_ppm) {
		log__error("cannot measure what a sample costs: %s",
			   err == -EBUSY ? "other work on this machine disturbs it"
					 : strerror(-err));
		log__hint("set the rate with -sample-rate HZ, which needs no measurement");
		return err;
	}
	overhead->hz = overhead->first_hz = overhead__rate(o, &overhead->cost, &load);
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
	say_rate(o, &overhead->cost, overhead->hz);
	return 0;
}

/* Thresholds below this many stacks are near what one costs. */
#define NEAR_STACKS 2

void overhead__say_near(struct overhead *o, uint64_t threshold_ns)
{
	char threshold[UNITS_TEXT_SIZE], sample[UNITS_TEXT_SIZE];

	if (o->is_near_told || !threshold_ns || threshold_ns >= NEAR_STACKS * o->cost.sample_ns)
		return;
	o->is_near_told = true;
	log__warn("a call may be over the threshold of %s only because a stack was taken in it, "
		  "which takes %s here",
		  units__format_duration(threshold, threshold_ns),
		  units__format_duration(sample, o->cost.sample_ns));
	if (o->hz / 10 >= SAMPLE_RATE_LEAST)
		log__hint("-sample-rate %u takes fewer stacks, so that this is less frequent",
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

/* The least number of stacks that a call as long as the threshold must have. */
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
