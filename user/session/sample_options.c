// SPDX-License-Identifier: MIT
#include "session/sample_options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "util/log.h"
#include "util/units.h"

const char *const unwind_names[] = {"auto", "fp", "dwarf", "lbr", NULL};

static int check_overhead(struct sample_options *o, const char *command)
{
	o->insists = o->max_overhead && !strcmp(o->max_overhead, "none");
	if (!o->max_overhead || o->insists)
		return 0;
	if (!units__parse_percent(o->max_overhead, &o->max_overhead_ppm) && o->max_overhead_ppm)
		return 0;
	log__error("%s: -max-overhead '%s' is not a percentage", command, o->max_overhead);
	log__hint("up to 100, or none: -max-overhead 1%%");
	return -EINVAL;
}

int sample_options__check(struct sample_options *o, const char *command)
{
	if (o->rate < 1 && o->rate != SAMPLE_RATE_AUTO) {
		log__error("%s: -sample-rate must be at least 1", command);
		log__hint("it is in samples a second: -sample-rate 1000");
		return -EINVAL;
	}
	return check_overhead(o, command);
}
