// SPDX-License-Identifier: MIT
#include "session/capture_options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "session/probe/kernel_probe.h"
#include "util/log.h"
#include "util/units.h"

#define SOURCE_NAME(number, name) #name,
const char *const source_names[] = {"auto", SOURCES(SOURCE_NAME) NULL};
const char *const return_probe_names[] = {"auto", "uretprobe", "ret-insns", NULL};
const char *const unwind_names[] = {"auto", "fp", "dwarf", "lbr", NULL};
/* The index is 1 + enum pt_freeze. */
const char *const freeze_names[] = {"auto", "pause", "refresh", "disable", NULL};

static int refuse(const char *command, const char *what, const char *hint)
{
	log__error("%s: %s", command, what);
	log__hint("%s", hint);
	return -EINVAL;
}

static int check_sampling(struct capture_options *all, const char *command)
{
	struct sample_options *o = &all->sample;
	const char *most = o->max_overhead;

	if (o->unwind == UNWIND_DWARF && (all->no_stack_copy || all->stack_copy < 8))
		return refuse(command, "-unwind dwarf needs copies of the stack",
			      "leave out -no-stack-copy, or a small -stack-copy; or use -unwind "
			      "fp");
	if (o->rate < 1 && o->rate != SAMPLE_RATE_AUTO)
		return refuse(command, "-sample-rate must be at least 1",
			      "the rate is in samples per second: -sample-rate 1000");
	o->insists = most && !strcmp(most, "none");
	if (!most || o->insists ||
	    (!units__parse_percent(most, &o->max_overhead_ppm) && o->max_overhead_ppm))
		return 0;
	log__error("%s: -max-overhead '%s' is not a valid percentage", command, most);
	log__hint("use a percentage above 0, up to 100, or none: -max-overhead 1%%");
	return -EINVAL;
}

/* Checks which processes, and which part of their time, are recorded. */
static int check_recorded(struct capture_options *o, const char *command)
{
	const struct target_options *t = &o->target;

	if (o->source == SOURCE_SOFT && (t->cgroup || t->container || t->pod))
		return refuse(command, "-source soft cannot record a cgroup, container or pod",
			      "-source soft steps one process: -pid PID");
	if (o->source == SOURCE_SOFT && o->children)
		return refuse(command, "-source soft follows no children",
			      "-source soft steps one process: leave -children out");
	if (o->children && (t->cgroup || t->container || t->pod))
		return refuse(command, "-children belongs to -pid and -name",
			      "a cgroup includes what its processes fork: leave -children out");
	if (o->requests && (o->start || o->stop))
		return refuse(command, "-requests sets -start and -stop itself",
			      "leave out -start and -stop, or -requests");
	/* Regions by system calls work with any server library. */
	if (o->requests) {
		o->start = SYSCALL_REQUEST_START;
		o->stop = SYSCALL_REQUEST_STOP;
		log__info("-requests means -start '%s' -stop '%s'%s", o->start, o->stop,
			  o->key ? ""
				 : "; if the server asks another one before it answers, -key "
				   "arg1 measures up to the answer");
	}
	if (!o->start != !o->stop) {
		log__error("%s: -%s needs -%s", command, o->start ? "start" : "stop",
			   o->start ? "stop" : "start");
		log__hint("give both: -start request_begin -stop request_end");
		return -EINVAL;
	}
	if (o->start && o->freeze_method && strcmp(freeze_names[o->freeze_method], "pause")) {
		log__error("%s: -freeze %s cannot resume recording at -start", command,
			   freeze_names[o->freeze_method]);
		log__hint("only -freeze pause can: leave out -freeze");
		return -EINVAL;
	}
	return 0;
}

static int check_full(struct capture_options *o, const char *command)
{
	bool triggers = o->symbols.n || o->start || threshold__is_set(&o->delay_thresh) ||
			threshold__is_set(&o->duration_thresh) || o->limits.stall_thresh_ns ||
			capture_options__cpu_measure(o) || o->limits.after_ns ||
			o->limits.min_interval_ns || o->limits.skip || o->limits.max_hits ||
			o->multi_snapshot != 1 || o->immediate_stop || o->freeze_method;

	if (!o->full)
		return 0;
	if (triggers)
		return refuse(
			command,
			"-full-execution cannot be combined with a trigger, -multi-snapshot, "
			"-freeze or -immediate-stop",
			"leave out -full-execution or the others; 'decode -filter A..B' finds "
			"calls in the recording");
	if (o->source == SOURCE_SAMPLE || o->sample.also.n)
		return refuse(command,
			      "-full-execution records every call: -source sample and -also cannot "
			      "be used with it",
			      "use -source pt or soft without -also, or leave out -full-execution");
	o->multi_thread = true;
	return 0;
}

enum mt_cpu_measure capture_options__cpu_measure(const struct capture_options *o)
{
	return threshold__is_set(&o->cpu_thresh)       ? MT_CPU_ON
	       : threshold__is_set(&o->off_cpu_thresh) ? MT_CPU_OFF
						       : MT_CPU_ALL;
}

/* Parses and checks -if, -key and -print. With retval, the call's return is the hit. */
static int check_condition(struct capture_options *o, const char *command)
{
	int err = hit_reads__parse(&o->reads, o->condition, o->key, o->print);
	const char *option = err ? NULL : hit_reads__of_memory(&o->reads);

	if (option && o->no_stack_copy) {
		log__error("%s: -no-stack-copy stores no memory of the program, and %s reads some",
			   command, option);
		log__hint("leave out one of the two; plain arguments are not in memory: -print "
			  "arg1");
		return -EINVAL;
	}
	if (!err && o->reads.has_stop_key && !o->start) {
		log__error("%s: -key: the second value is read at -stop, but no -stop is given",
			   command);
		log__hint("name one value, or add -start and -stop");
		return -EINVAL;
	}
	o->reads.stores_no_memory = o->no_stack_copy;
	option = err ? NULL : hit_reads__of_return(&o->reads);
	if (!option)
		return err;
	if (threshold__is_set(&o->delay_thresh) || o->start) {
		log__error("%s: %s: retval is known only when a call returns", command, option);
		log__hint("use -duration-thresh, or no threshold: -delay-thresh, -start and -stop "
			  "do not wait for the return");
		return -EINVAL;
	}
	if (!threshold__is_set(&o->duration_thresh))
		o->duration_thresh.ns = 1;
	return 0;
}

/* Without another threshold, calls or regions of any duration are measured. */
static int check_cpu(struct capture_options *o, const char *command)
{
	struct threshold *whole =
		threshold__is_set(&o->delay_thresh) ? &o->delay_thresh : &o->duration_thresh;

	if (threshold__is_set(&o->cpu_thresh) && threshold__is_set(&o->off_cpu_thresh))
		return refuse(command, "-cpu-thresh and -off-cpu-thresh cannot both be given",
			      "-cpu-thresh counts the time on a CPU, -off-cpu-thresh the rest: "
			      "choose one");
	if (capture_options__cpu_measure(o) && whole->percent > 0)
		return refuse(command,
			      "-cpu-thresh and -off-cpu-thresh cannot be combined with a "
			      "percentile of -delay-thresh or -duration-thresh",
			      "give the percentile to -cpu-thresh or -off-cpu-thresh instead: "
			      "-cpu-thresh p99");
	if (capture_options__cpu_measure(o) && !whole->ns)
		whole->ns = 1;
	return 0;
}

int capture_options__check(struct capture_options *o, const char *command)
{
	int err;

	log__set_level(o->verbose ? LOG_VERBOSE : o->quiet ? LOG_QUIET : LOG_NORMAL);
	/* There are many samples but one hit: a sample's copy is 8K, as with perf. */
	o->sample.stack_copy = o->stack_copy == STACK_COPY_AUTO ? 8 << 10 : o->stack_copy;
	o->stack_copy = o->stack_copy == STACK_COPY_AUTO ? 16 << 10 : o->stack_copy;
	if (threshold__is_set(&o->delay_thresh) && threshold__is_set(&o->duration_thresh))
		return refuse(command, "-delay-thresh and -duration-thresh cannot both be given",
			      "choose one: -delay-thresh is from one call to the next, "
			      "-duration-thresh of one call");
	if (target_options__check(&o->target, command) || check_recorded(o, command))
		return -EINVAL;
	for (size_t i = 0; i < o->labels.n; i++) {
		if (strchr(o->labels.v[i], '=') && o->labels.v[i][0] != '=')
			continue;
		log__error("%s: -label %s is not KEY=VALUE", command, o->labels.v[i]);
		log__hint("for example -label zone=eu-1");
		return -EINVAL;
	}
	if (o->kernel_only && o->source != SOURCE_AUTO && o->source != SOURCE_PT) {
		log__error("%s: -trace-kernel-only needs Intel PT: -source %s cannot record only "
			   "the kernel",
			   command, source_names[o->source]);
		log__hint("-source sample -trace-include-kernel records kernel stacks");
		return -EINVAL;
	}
	o->kernel |= o->kernel_only;
	if (o->kernel && o->source == SOURCE_SOFT)
		return refuse(command,
			      "-source soft cannot trace the kernel: it steps user code only",
			      "leave out -trace-include-kernel, or use -source pt or sample");
	if (check_full(o, command) || check_cpu(o, command) || check_condition(o, command) ||
	    check_sampling(o, command))
		return -EINVAL;
	if (o->power && o->source != SOURCE_AUTO && o->source != SOURCE_PT) {
		log__error(
			"%s: -trace-power needs Intel PT: -source %s does not record power events",
			command, source_names[o->source]);
		log__hint("leave -trace-power out, or use -source pt");
		return -EINVAL;
	}
	if (o->stack_copy > MT_COPY_MAX) {
		log__error("%s: -stack-copy is limited to %dK", command, MT_COPY_MAX / 1024);
		log__hint("records of perf.data cannot be larger; the default is 16K");
		return -EINVAL;
	}
	err = pt_timing__parse(o->resolution, &o->timing);
	o->timing.pwr_evt |= o->power;
	return err;
}
