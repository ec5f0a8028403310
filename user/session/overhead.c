// SPDX-License-Identifier: MIT
#include "session/overhead.h"

#include "session/sampling.h"
#include "util/log.h"

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
	struct sample_load now = {0};

	for (size_t i = 0; i < pids->n; i++) {
		struct sample_load one;

		if (!sample_load__read(pids->v[i], &one)) {
			now.cpu_ns += one.cpu_ns;
			now.switches += one.switches;
		}
	}
	return overhead__take(o, options, &now);
}

void overhead__say(const struct overhead *o, const struct sample_options *options)
{
	if (o->hz != o->first_hz)
		log__info("sample: %u stacks a second in the end, for -max-overhead %s", o->hz,
			  options->max_overhead);
}
