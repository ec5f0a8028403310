// SPDX-License-Identifier: MIT
/* Finds what triggers a session: symbols, or the program's own trigger. Says what it waits for. */
#include <errno.h>
#include <string.h>

#include "capture/pt/pt_source.h"
#include "session/probe/jit_probe.h"
#include "session/probe/probes.h"
#include "session/probe/find_probes.h"
#include "session/session.h"
#include "session/session_internal.h"
#include "target/go_runtime.h"
#include "util/log.h"
#include "util/units.h"

/* Uses the program's own trigger if the user has named nothing. */
static int find_default(struct session *s)
{
	const struct capture_options *o = s->options;
	const char *own = s->symbols.names.n ? s->symbols.names.v[0] : NULL, *lacking = NULL;

	if (o->symbols.n || o->stop || s->start->spool_dir)
		return 0;
	/*
	 * For several programs, session__choose_symbols() has already looked for a default trigger.
	 */
	if (!own && !s->programs.all.n)
		own = default_trigger__find(s->has_process ? &s->process : NULL,
					    s->start->exec_path);
	if (own && !s->symbols.names.n && selectors__add(&s->symbols, own))
		return -ENOMEM;
	if (own)
		log__info("no -symbol: using the program's own trigger, %s", own);
	else if (threshold__is_set(&o->delay_thresh) || threshold__is_set(&o->duration_thresh) ||
		 o->limits.stall_thresh_ns)
		lacking = "no function for the threshold to measure";
	else if (o->limits.after_ns || o->limits.min_interval_ns || o->limits.skip ||
		 o->limits.max_hits)
		lacking = "-after, -min-interval, -skip and -max-hits need a trigger";
	else
		log__info("no -symbol, and the program does not contain mtbpf_take_snapshot(): "
			  "nothing triggers");
	if (!lacking)
		return 0;
	log__error("%s, and the program does not contain mtbpf_take_snapshot()", lacking);
	log__hint(s->has_process ? "add -symbol NAME ('mtbpf list -pid PID' shows names)"
				 : "add -symbol NAME, a function of the program");
	return -EINVAL;
}

int session__choose_symbols(struct session *s)
{
	const char *own = NULL;

	if (!s->options->symbols.n && s->options->stop)
		return selectors__add(&s->symbols, s->options->stop);
	if (!s->options->symbols.n && s->programs.all.n)
		own = programs__default_trigger(&s->programs);
	return own ? selectors__add(&s->symbols, own)
		   : selectors__split(&s->symbols, &s->options->symbols, "-symbol");
}

/* Finds the offsets for all programs; false if a Go version is unknown or two of them differ. */
static bool find_offsets(const struct probes *also, struct mt_go_offsets *offsets)
{
	*offsets = (struct mt_go_offsets){0};
	for (size_t i = 0; i < also->all.n; i++) {
		struct mt_go_offsets own;

		if (!go_runtime__offsets(also->all.v[i].go_minor, &own) ||
		    (i && memcmp(&own, offsets, sizeof(own)))) {
			*offsets = (struct mt_go_offsets){0};
			return false;
		}
		*offsets = own;
	}
	return true;
}

static int add_if_left(void *also, const struct probe *probe)
{
	return probe->exits_err ? 0 : probes__add(also, probe);
}

/*
 * Finds the functions of Go's runtime that split a goroutine's call: those of its waits, and the
 * two of `world`, between which no goroutine runs.
 */
static int find_runtime(struct session *s, const struct probe_source *in)
{
	static const char *const world[] = {"runtime.stopTheWorldWithSema",
					    "runtime.startTheWorldWithSema"};
	const size_t n = sizeof(world) / sizeof(world[0]);
	bool is_of_calls = session__has_ends(s) && s->ops->samples;
	struct go_waits *waits = &s->go_waits;
	int err;

	if (!is_of_calls || !s->probes.all.n || !probes__are_go(&s->probes) ||
	    s->also.all.n + n >= ALSO_MAX)
		return 0;
	err = probe__each_function(in, "runtime.gopark", probes__add, &waits->park)
		      ?: probe__each_function(in, "runtime.execute", probes__add, &waits->execute);
	/*
	 * If there are not as many places of gopark() as of execute(), drops all: waits would have
	 * no end.
	 */
	if (waits->park.all.n != waits->execute.all.n) {
		probes__fini(&waits->park);
		probes__fini(&waits->execute);
	}
	if (err || !waits->park.all.n || !find_offsets(&waits->park, &waits->offsets))
		return err;
	for (size_t i = 0; i < n && !err; i++)
		err = probe__each_function(in, world[i], add_if_left, &s->also);
	return err ?: probe__each_function(in, "runtime.ready", probes__add, &waits->ready);
}

static int find_also(struct session *s, const struct probe_source *in)
{
	static const struct probes none = {0};
	const struct option_list *texts = &s->options->sample.also;
	/* With a duration the returns of the triggering functions are probed anyway. */
	bool have_returns = session__has_ends(s) && !probes__are_library(&s->probes);
	int err = 0;

	if (texts->n && !s->ops->samples) {
		log__error("-also is only for -source sample: -source %s shows every call",
			   s->ops->name);
		log__hint("leave out -also, or use -source sample");
		return -EINVAL;
	}
	if (texts->n)
		err = also__find(&s->also, texts, in, have_returns ? &s->probes : &none,
				 s->options->return_probes);
	return err ? err : find_runtime(s, in);
}

/* With several programs: opens one process, which represents them. */
static int choose_process(struct session *s)
{
	const struct process *first = NULL;
	size_t n;
	int err;

	if (!s->programs.all.n)
		return 0;
	/* Without a cgroup, the user has chosen these processes: warn of those without a probe. */
	n = s->probes.all.n && !s->cgroup ? programs__unprobed(&s->programs, &first) : 0;
	if (n == 1)
		log__warn("process %d (%s) does not contain %s, and cannot trigger", first->pid,
			  first->comm, s->probes.shown);
	else if (n)
		log__warn("%zu of the processes, such as %d (%s), do not contain %s, and cannot "
			  "trigger",
			  n, first->pid, first->comm, s->probes.shown);
	err = process__open(&s->process, programs__first(&s->programs)->pid);
	s->has_process = !err;
	return err;
}

/*
 * Calls, stalls and times on or off the CPU belong to threads, and not to keys. A thread's CPU time
 * at a mark is not known; a goroutine may run on several threads.
 */
static int check_threads(const struct session *s)
{
	const struct capture_options *o = s->options;
	bool measures_cpu = capture_options__cpu_measure(o);
	bool of_threads = o->limits.stall_thresh_ns || measures_cpu;
	bool of_delays = threshold__is_set(&o->delay_thresh) && !o->start;
	bool of_regions = s->regions.stop_triggers && !threshold__is_set(&o->delay_thresh);
	bool measures_calls = session__measures_duration(s) && s->probes.all.n;
	bool is_go = measures_calls && probes__are_go(&s->probes) && !s->regions.stop_triggers;

	if (o->reads.has_key && (of_threads || (!of_delays && !of_regions))) {
		log__error(of_threads ? "-key cannot be used with -stall-thresh, -cpu-thresh and "
					"-off-cpu-thresh, which measure threads"
				      : "-key is for -delay-thresh, or for the time from -start to "
					"-stop");
		log__hint("use -start A -stop B -key arg1 -duration-thresh 50ms, which measures "
			  "from A to the B with the same argument, in any thread");
		return -EINVAL;
	}
	if (!measures_cpu || !measures_calls || (!is_go && !probes__are_library(&s->probes)))
		return 0;
	log__error("-cpu-thresh and -off-cpu-thresh: %s",
		   is_go ? "calls of Go functions belong to goroutines, not to threads"
			 : "the time since mtbpf_mark_start() is not counted");
	log__hint("add -delay-thresh: -cpu-thresh and -off-cpu-thresh then measure the time "
		  "between two hits of one thread");
	return -EINVAL;
}

/* A process is killed only once, and the hit may be in a thread of any process. */
static int check_oom(const struct session *s)
{
	const struct capture_options *o = s->options;
	bool is_oom = false;

	VEC_EACH(&s->probes.all, probe)
		is_oom |= probe->kernel.kind == KERNEL_PROBE_OOM;
	if (!is_oom || !(threshold__is_set(&o->delay_thresh) || o->limits.stall_thresh_ns ||
			 o->limits.max_hits))
		return 0;
	log__error("-delay-thresh, -stall-thresh and -max-hits cannot be used with " OOM_PREFIX
		   ", which a process hits only once");
	log__hint("leave these options out");
	return -EINVAL;
}

bool session__has_jit_moved(const struct session *s)
{
	const struct probes *const all[] = {&s->probes, &s->regions.starts, &s->regions.stops};

	return s->has_process &&
	       ARRAY_FIND(all, probes,
			  !jit_probe__check(s->process.pid, (*probes)->all.v, (*probes)->all.n));
}

const struct probe *session__find_unfrozen(const struct session *s)
{
	/* A -stop pauses Intel PT whether or not it triggers. */
	if (s->regions.stop_triggers && start_stop__bounds(&s->regions))
		return NULL;
	return gate__find_unfrozen(s->probes.all.v, s->probes.all.n);
}

/* The first probe inside the kernel; breakpoints are in user code. */
static const struct probe *inside_kernel(const struct probes *probes)
{
	return VEC_FIND(&probes->all, e,
			probe__in_kernel(e) && e->kernel.kind != KERNEL_PROBE_BREAKPOINT);
}

/*
 * If Intel PT were paused and resumed inside the kernel, the trace would not show where: the same
 * system call may be the last of one region and the first of the next one. The stepper steps user
 * code only. Both sources then record everything, and the time from -start to -stop triggers all
 * the same.
 */
static int check_bounds(struct session *s)
{
	const struct probe *bound =
		inside_kernel(&s->regions.starts) ?: inside_kernel(&s->regions.stops);

	if (!bound || s->ops->samples || s->regions.by_key)
		return 0;
	if (s->regions.stop_triggers) {
		start_stop__only_measure(&s->regions);
		return 0;
	}
	log__error("-source %s cannot start or stop recording at %s, which is in the kernel",
		   s->ops->name, bound->name);
	log__hint("use -source sample, name functions of the program, or leave out -symbol: the "
		  "time from -start to -stop is then the trigger");
	return -EINVAL;
}

static int check_kernel_probes(struct session *s)
{
	const struct capture_options *o = s->options;
	int err = check_bounds(s);
	bool has_regions = start_stop__bounds(&s->regions);
	bool insists = o->immediate_stop || has_regions ||
		       (o->freeze_method && o->freeze_method != 1 + PT_FREEZE_DISABLE);
	const struct probe *late =
		insists && s->ops == &source_pt ? session__find_unfrozen(s) : NULL;

	if (err)
		return err;
	if (late) {
		log__error("%s cannot freeze Intel PT at %s: only user space can, some 50 us "
			   "after the hit",
			   has_regions ? "-start and -stop pause and resume Intel PT, so that mtbpf"
			   : o->immediate_stop ? "-immediate-stop"
					       : "-freeze",
			   late->name);
		log__hint("%s, or name a function of the program: -symbol libc.so.6:fsync",
			  has_regions ? "leave out -start and -stop" : "leave that option out");
		return -EINVAL;
	}
	err = check_oom(s);
	if (!err)
		err = probes__check_jit(&s->probes, &s->regions,
					!s->cgroup && s->pids.n == 1 && !o->children);
	return !err && session__has_jit_moved(s) ? -ESTALE : err;
}

int session__find_trigger(struct session *s)
{
	const struct probe_source source = {.process = s->has_process ? &s->process : NULL,
					    .exec_path = s->start->exec_path,
					    .programs = s->programs.all.n ? &s->programs : NULL,
					    .reads = &s->options->reads};
	int err = source.process || source.programs
			  ? source_choice__check(s->ops, &s->process, s->pids.n)
			  : 0;

	if (!err)
		err = find_default(s);
	if (!err)
		err = selectors__replace_dot(&s->symbols, &source);
	if (!err)
		err = probes__find(&s->probes, &s->symbols, &source);
	if (!err)
		err = hit_reads__check(&s->options->reads, s->probes.all.v, s->probes.all.n, false);
	if (!err)
		err = choose_process(s);
	if (!err)
		err = start_stop__find(&s->regions, s->options, &source);
	if (!err)
		err = check_threads(s);
	if (!err)
		err = stall__choose(s);
	if (!err)
		err = find_also(s, &source);
	if (!err)
		err = check_kernel_probes(s);
	if (!err && s->has_process && !s->cgroup && process__stopped(s->process.pid))
		log__warn("process %d is stopped until 'kill -CONT %d'", s->process.pid,
			  s->process.pid);
	if (err || !session__has_ends(s) || s->regions.stop_triggers)
		return err;
	return probes__check_calls(&s->probes);
}

static void say_waiting_for_stall(const struct session *s, bool is_alone, const char *now)
{
	char text[UNITS_TEXT_SIZE];

	units__format_duration(text, s->options->limits.stall_thresh_ns);
	log__info("%swaiting for a thread that has %s %s for %s%s%s%s", is_alone ? "" : "also ",
		  s->stall_from == MT_STALL_CALL     ? "been in a call of"
		  : s->stall_from == MT_STALL_REGION ? "passed -start and not reached"
						     : "not hit",
		  s->probes.shown, text, s->stall_from == MT_STALL_CALL ? ", and still is" : "",
		  is_alone ? "; " : "", is_alone ? now : "");
}

void session__say_waiting(const struct session *s)
{
	const struct capture_options *o = s->options;
	const char *now = s->start->observer ? "SIGUSR1 takes the snapshot now"
					     : "Ctrl-C takes the snapshot now";
	char text[THRESHOLD_TEXT_SIZE + UNITS_TEXT_SIZE], memory[SOURCE_TEXT_SIZE];
	const struct probe *bound =
		inside_kernel(&s->regions.starts) ?: inside_kernel(&s->regions.stops);
	/* Finished calls, delays or regions may trigger, not only stalls. */
	bool has_threshold = threshold__is_set(&o->delay_thresh) || session__measures_duration(s);

	if (s->ops->memory)
		log__info("%s: %s; %s", s->ops->name, s->ops->about,
			  s->ops->memory(s->source, memory));
	else
		log__info("%s: %s", s->ops->name, s->ops->about);
	session__say_cost(s);
	if (s->regions.by_key)
		log__info("a request lasts from %s to %s, matched by -key %s; all threads are "
			  "recorded all the time",
			  s->regions.starts.shown, s->regions.stops.shown, o->key);
	else if (s->regions.only_measured)
		log__info("-source %s cannot start or stop recording at %s, which is in the "
			  "kernel: mtbpf records all the time, and measures the time from -start "
			  "to -stop",
			  s->ops->name, bound->name);
	else if (start_stop__any(&s->regions))
		log__info("each thread is recorded only from %s to %s", s->regions.starts.shown,
			  s->regions.stops.shown);
	progress__format_threshold(&s->progress, text);
	if (capture_options__cpu_measure(o))
		log__info("waiting for %s %s with at least %s %s the CPU; %s",
			  threshold__is_set(&o->delay_thresh) ? "two hits of"
			  : s->regions.stop_triggers	      ? "a region from -start to"
							      : "a call of",
			  s->probes.shown, text,
			  capture_options__cpu_measure(o) == MT_CPU_ON ? "on" : "off", now);
	else if (o->limits.stall_thresh_ns && !has_threshold)
		say_waiting_for_stall(s, true, now);
	else if (threshold__is_set(&o->delay_thresh))
		log__info("waiting for two hits of %s at least %s apart; %s", s->probes.shown, text,
			  now);
	else if (session__measures_duration(s) && s->regions.stop_triggers)
		log__info("waiting for %s at least %s after %s; %s", s->probes.shown, text,
			  s->regions.starts.shown, now);
	else if (session__measures_duration(s) && probes__are_library(&s->probes))
		log__info("waiting for a hit of %s at least %s after mtbpf_mark_start(); %s",
			  s->probes.shown, text, now);
	else if (session__measures_duration(s))
		log__info("waiting for a call of %s of at least %s; %s", s->probes.shown, text,
			  now);
	else if (s->probes.all.n)
		log__info("waiting for a hit of %s; %s", s->probes.shown, now);
	else if (s->start->spool_dir)
		log__info("recording everything to disk; Ctrl-C ends the recording");
	else if (s->start->command)
		log__info("recording while the command runs; Ctrl-C takes the snapshot");
	else
		log__info("recording; %s", s->start->observer ? "SIGUSR1 takes snapshots"
							      : "Ctrl-C takes the snapshot");
	if (o->limits.stall_thresh_ns && has_threshold)
		say_waiting_for_stall(s, false, now);
	if (s->progress.threshold_ns == UINT64_MAX)
		log__info("a percentile threshold can trigger only after %llu values have been "
			  "measured",
			  (unsigned long long)s->progress.learner.needed);
}
