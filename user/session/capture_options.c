// SPDX-License-Identifier: MIT
#include "session/capture_options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "util/log.h"
#include "util/units.h"

const char *const source_names[] = {"auto", "pt", "sample", "soft", NULL};
const char *const return_probe_names[] = {"auto", "uretprobe", "ret-insns", NULL};
/* 1 + enum pt_freeze */
const char *const freeze_names[] = {"auto", "pause", "refresh", "disable", NULL};

static int check_sampling(const struct capture_options *o, const char *command)
{
	if (o->sample.unwind == UNWIND_DWARF && (o->no_stack_copy || o->stack_copy < 8)) {
		log__error("%s: -unwind dwarf needs copies of the stack", command);
		log__hint("leave -no-stack-copy out, or use -unwind fp");
		return -EINVAL;
	}
	return 0;
}

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

static int sample_options__check(struct sample_options *o, const char *command)
{
	if (o->rate < 1 && o->rate != SAMPLE_RATE_AUTO) {
		log__error("%s: -sample-rate must be at least 1", command);
		log__hint("it is in samples a second: -sample-rate 1000");
		return -EINVAL;
	}
	return check_overhead(o, command);
}

/* What is one process, and whom else there is to be told of. */
static int check_followed(const struct capture_options *o, const char *command)
{
	const struct target_options *t = &o->target;

	if (o->source == SOURCE_SOFT && (t->cgroup || t->container || t->pod)) {
		log__error("%s: -source soft cannot record a cgroup", command);
		log__hint("it steps one process: -pid PID");
		return -EINVAL;
	}
	if (o->source == SOURCE_SOFT && o->children) {
		log__error("%s: -source soft follows no children", command);
		log__hint("it steps one process: leave -children out");
		return -EINVAL;
	}
	if (o->children && (t->cgroup || t->container || t->pod)) {
		log__error("%s: -children belongs to -pid and -name", command);
		log__hint("what a cgroup's processes fork is in it: leave -children out");
		return -EINVAL;
	}
	return 0;
}

static int check_region(const struct capture_options *o, const char *command)
{
	if (!o->start != !o->stop) {
		log__error("%s: -%s needs -%s", command, o->start ? "start" : "stop",
			   o->start ? "stop" : "start");
		log__hint("a thread is recorded from its hit of the one to its hit of the other: "
			  "-start request_begin -stop request_end");
		return -EINVAL;
	}
	if (o->start && o->freeze_method && strcmp(freeze_names[o->freeze_method], "pause")) {
		log__error("%s: -freeze %s cannot go on at -start again", command,
			   freeze_names[o->freeze_method]);
		log__hint("Intel PT is paused and resumed by -freeze pause: leave -freeze out");
		return -EINVAL;
	}
	return 0;
}

static int refuse_with_full(const char *command, const char *other, const char *hint)
{
	log__error("%s: -full-execution records everything, and %s", command, other);
	log__hint("%s", hint);
	return -EINVAL;
}

static int check_full(struct capture_options *o, const char *command)
{
	bool triggers = o->symbols.n || o->start || threshold__is_set(&o->delay_thresh) ||
			threshold__is_set(&o->duration_thresh) || o->after_ns ||
			o->min_interval_ns || o->skip || o->max_hits || o->multi_snapshot != 1 ||
			o->immediate_stop || o->freeze_method;

	if (!o->full)
		return 0;
	if (triggers)
		return refuse_with_full(command, "nothing triggers or freezes it",
					"leave one of the two out; 'decode -filter A..B' finds "
					"calls in what was recorded");
	if (o->source == SOURCE_SAMPLE || o->sample.also.n)
		return refuse_with_full(command, "samples are not everything",
					"-source pt or soft follows every call; without "
					"-full-execution, samples look back");
	o->multi_thread = true;
	return 0;
}

int capture_options__check(struct capture_options *o, const char *command)
{
	log__set_level(o->verbose ? LOG_VERBOSE : o->quiet ? LOG_QUIET : LOG_NORMAL);
	if (threshold__is_set(&o->delay_thresh) && threshold__is_set(&o->duration_thresh)) {
		log__error("%s: -delay-thresh and -duration-thresh cannot both be given", command);
		log__hint("delay: from one call to the next; duration: of one call");
		return -EINVAL;
	}
	if (target_options__check(&o->target, command) || check_followed(o, command) ||
	    check_region(o, command))
		return -EINVAL;
	if (o->kernel_only && o->source != SOURCE_AUTO && o->source != SOURCE_PT) {
		log__error("%s: -trace-kernel-only needs Intel PT: -source %s does not trace it",
			   command, source_names[o->source]);
		log__hint("-source sample -trace-include-kernel has the kernel's part of stacks");
		return -EINVAL;
	}
	o->kernel |= o->kernel_only;
	if (o->kernel && o->source == SOURCE_SOFT) {
		log__error("%s: -source soft cannot trace the kernel: it steps user code only",
			   command);
		log__hint("leave -trace-include-kernel out, or use Intel PT");
		return -EINVAL;
	}
	if (check_full(o, command))
		return -EINVAL;
	if (check_sampling(o, command) || sample_options__check(&o->sample, command))
		return -EINVAL;
	if (o->stack_copy > MT_COPY_MAX) {
		log__error("%s: -stack-copy cannot be more than %dK", command, MT_COPY_MAX / 1024);
		log__hint("a record of perf's file holds no more; 16K is the default");
		return -EINVAL;
	}
	return pt_timing__parse(o->resolution, &o->timing);
}
