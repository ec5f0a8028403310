// SPDX-License-Identifier: MIT
#include "session/overhead.h"

#include <inttypes.h>
#include <stdio.h>

#include "session/sampling.h"
#include "util/log.h"
#include "util/units.h"

/* What is nearer than that stays as it is, in percent. */
#define NEAR 20

static bool is_far(unsigned int hz, unsigned int from_hz)
{
	return hz * 100ull > from_hz * (100ull + NEAR) || hz * (100ull + NEAR) < from_hz * 100ull;
}

/* Half of it is forgotten each time: one quiet second does not say that all will be. */
static void remember(struct overhead *o, const struct sample_load *now)
{
	o->lately.cpu_ns = o->lately.cpu_ns / 2 + now->cpu_ns - o->seen.cpu_ns;
	o->lately.switches = o->lately.switches / 2 + now->switches - o->seen.switches;
	o->lately.hits = o->lately.hits / 2 + now->hits - o->seen.hits;
}

bool overhead__take(struct overhead *o, const struct sample_options *options,
		    const struct sample_load *now)
{
	bool is_known = o->seen.cpu_ns && now->cpu_ns >= o->seen.cpu_ns &&
			now->switches >= o->seen.switches;
	unsigned int hz;

	if (is_known)
		remember(o, now);
	o->seen = *now;
	if (!is_known || !o->lately.cpu_ns)
		return false;
	hz = sampling__rate(options, &o->cost, &o->lately);
	if (o->most_hz && hz > o->most_hz)
		hz = o->most_hz;
	if (!o->is_broken && !sampling__is_kept(options, &o->cost, &o->lately)) {
		o->is_broken = true;
		sampling__warn_broken(options);
	}
	if (!is_far(hz, o->hz))
		return false;
	log__debug("sample: %u stacks a second from now on, for -max-overhead %s", hz,
		   options->max_overhead);
	o->hz = hz;
	return true;
}

bool overhead__look(struct overhead *o, const struct sample_options *options,
		    const struct pid_set *pids)
{
	struct sample_load now = {.hits = o->counted.hits};

	for (size_t i = 0; i < pids->n; i++) {
		struct sample_load one;

		if (!sample_load__read(pids->v[i], &one)) {
			now.cpu_ns += one.cpu_ns;
			now.switches += one.switches;
		}
	}
	return overhead__take(o, options, &now);
}

/* The least number of stacks in a call that is as long as the threshold. */
#define LEAST_STACKS 50
/* Periods vary a little. */
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
		log__info("sample: %u stacks a second in the end, for -max-overhead %s", o->hz,
			  options->max_overhead);
}

static uint64_t rate_of(uint64_t now, uint64_t before, uint64_t span_ns)
{
	return now > before ? (uint64_t)((double)(now - before) * 1e9 / (double)span_ns) : 0;
}

bool overhead__count(struct overhead *o, const struct overhead_counts *now)
{
	const struct overhead_counts *before = &o->counted;
	uint64_t span_ns = now->time_ns - before->time_ns;
	bool is_known = before->time_ns && span_ns;

	if (is_known)
		o->in_second = (struct overhead_counts){
			.cpu_ns = rate_of(now->cpu_ns, before->cpu_ns, span_ns),
			.switches = rate_of(now->switches, before->switches, span_ns),
			.stacks = rate_of(now->stacks, before->stacks, span_ns),
			.hits = rate_of(now->hits, before->hits, span_ns)};
	o->counted = *now;
	return is_known && o->in_second.cpu_ns;
}

static double share_of(const struct overhead *o, uint64_t n, uint64_t each_ns)
{
	return o->in_second.cpu_ns ? (double)n * (double)each_ns / (double)o->in_second.cpu_ns : 0;
}

double overhead__hits_share(const struct overhead *o)
{
	return share_of(o, o->in_second.hits, o->cost.hit_ns);
}

double overhead__share(const struct overhead *o)
{
	return share_of(o, o->in_second.switches, o->cost.switch_ns) +
	       share_of(o, o->in_second.stacks, o->cost.sample_ns) + overhead__hits_share(o);
}

const char *overhead__format(char buf[static OVERHEAD_TEXT_SIZE], const struct overhead *o)
{
	const struct {
		const char *what;
		uint64_t n, each_ns;
	} parts[] = {{"switches", o->in_second.switches, o->cost.switch_ns},
		     {"stacks", o->in_second.stacks, o->cost.sample_ns},
		     {"hits", o->in_second.hits, o->cost.hit_ns}};
	char each[UNITS_TEXT_SIZE];
	int n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].n && parts[i].each_ns)
			n += snprintf(buf + n, OVERHEAD_TEXT_SIZE - (size_t)n,
				      "%s%" PRIu64 " %s/s x %s", n ? " + " : "", parts[i].n,
				      parts[i].what,
				      units__format_duration(each, parts[i].each_ns));
	if (n)
		snprintf(buf + n, OVERHEAD_TEXT_SIZE - (size_t)n, " = %.1f %% of the target's CPU",
			 100 * overhead__share(o));
	return buf;
}
