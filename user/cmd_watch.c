// SPDX-License-Identifier: MIT
/* watch: shows how often a function is hit and the delays, to choose a threshold. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/recording/recording.h"
#include "session/capture_options.h"
#include "cmd.h"
#include "session/gate.h"
#include "session/progress.h"
#include "session/session.h"
#include "util/signals.h"
#include "session/probe/probes.h"
#include "session/probe/find_probes.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/names.h"
#include "util/units.h"

struct watch_options {
	struct capture_options common; /* pid, symbol, timeout, v, q */
	bool durations, on_cpu, off_cpu;
};

static const struct option_spec specs[] = {
	OPTIONS_TARGET,
	OPTION_CHILDREN(CHILDREN_HELP),
	OPTION_SYMBOL,
	OPTION_VALUE(
		"start", OPT_STRING, "NAME", start,
		"with -stop: measure the time from a thread's hit of NAME (as in -symbol) ..."),
	OPTION_VALUE("stop", OPT_STRING, "NAME", stop, "... to its next hit of this NAME"),
	OPTION_REQUESTS,
	{"durations", NULL, 0, OPT_FLAG, NULL,
	 "measure how long calls take, instead of the time between them",
	 offsetof(struct watch_options, durations), NULL},
	OPTION_IF,
	OPTION_KEY,
	{"on-cpu", NULL, 0, OPT_FLAG, NULL,
	 "measure only the time on a CPU, as -cpu-thresh of attach does",
	 offsetof(struct watch_options, on_cpu), NULL},
	{"off-cpu", NULL, 0, OPT_FLAG, NULL,
	 "measure only the time off the CPU, as -off-cpu-thresh of attach does",
	 offsetof(struct watch_options, off_cpu), NULL},
	OPTION_VALUE("stall-thresh", OPT_DURATION, "D", limits.stall_thresh_ns,
		     "count how often a thread has been without a hit (with -durations: in a call; "
		     "with -start: between the two) for this long"),
	OPTION_VALUE("timeout", OPT_DURATION, "D", timeout_ns, "stop after this long"),
	OPTION_RETURN_PROBES,
	OPTION_MAX_HITS,
	OPTIONS_LOG,
};

const struct option_table watch_table = {
	.command = "watch",
	.examples =
		(const char *const[]){
			"mtbpf watch -pid 1234 -symbol one_iter",
			"mtbpf watch -name 'web-*' -symbol one_iter",
			"mtbpf watch -pid 1234 -symbol one_iter -durations -timeout 10s",
			"mtbpf watch -pid 1234 -start request_begin -stop request_end", NULL},
	.usage = "watch -pid PID | -name GLOB | -container NAME | ... [-symbol NAME] "
		 "[-durations] [-start NAME -stop NAME] [-timeout D]",
	.summary = "Counts the hits of a function and shows the time between them; nothing is "
		   "recorded.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

/* Either hits of functions are counted, or regions between two places. */
struct watched {
	struct probes probes;
	struct start_stop regions;
	pid_t pid; /* the first process with these probes */
};

#define BAR_WIDTH 40
#define NS_PER_S  1000000000ull

static void print_histogram(const struct mt_stats *stats, const char *what)
{
	uint64_t most = 0;
	int first = -1, last = -1;

	for (int i = 0; i < MT_HIST_BUCKETS; i++) {
		if (!stats->hist[i])
			continue;
		first = first < 0 ? i : first;
		last = i;
		most = stats->hist[i] > most ? stats->hist[i] : most;
	}
	if (first < 0)
		return;
	printf("%23s : count\n", what);
	for (int i = first; i <= last; i++) {
		int width = (int)(stats->hist[i] * BAR_WIDTH / most);

		printf("%10s - %10s : %-8llu %.*s\n", DURATION(i ? 1ull << i : 0),
		       DURATION(1ull << (i + 1)), (unsigned long long)stats->hist[i], width,
		       "****************************************");
	}
}

/* Shows the status until Ctrl-C, the timeout, -max-hits or the end of the target. 0 or -errno. */
static int wait_for_end(const struct watch_options *options, const struct target *target,
			const struct trigger *trigger)
{
	uint64_t now = clock__now_ns(), deadline = UINT64_MAX;
	struct pollfd fds[] = {{.fd = interrupts__open(), .events = POLLIN},
			       {.fd = trigger__fd(trigger), .events = POLLIN}};
	struct mt_stats stats, last = {0};

	if (fds[0].fd < 0)
		return fds[0].fd;
	if (options->common.timeout_ns)
		deadline = now + options->common.timeout_ns;
	while (now < deadline) {
		uint64_t left = deadline - now, began = now;

		if (poll(fds, 2, left < NS_PER_S ? (int)(left / 1000000) + 1 : 1000) > 0)
			break;
		now = clock__now_ns();
		if (!trigger__stats(trigger, &stats)) {
			struct status_view view =
				hit_status__view(&stats, stats.hits - last.hits, now - began);

			status__show(&view);
			last = stats;
		}
		if (!options->common.children && !target__is_alive(target)) {
			log__end_line();
			log__info("the target has exited");
			break;
		}
	}
	log__end_line();
	close(fds[0].fd);
	return 0;
}

/* Prints which hits were not counted. */
static void say_drops(const struct mt_stats *stats, bool by_key)
{
	const uint64_t counts[DROPS] = {[DROP_UNMEASURED] = stats->unmeasured,
					[DROP_KEYS] = stats->evicted,
					[DROP_KEYLESS] = stats->keyless,
					[DROP_RESTARTED] = by_key ? stats->restarted : 0,
					[DROP_MISSED] = stats->missed};
	char text[DROP_TEXT_SIZE];

	for (int i = 0; i < DROPS; i++)
		if (counts[i])
			log__warn("lost: %s", drop__format(text, i, counts[i]));
}

static void print_option(const char *name, const char *value)
{
	if (!value)
		return;
	printf(" -%s ", name);
	shell__print_word(stdout, value);
}

static void print_target(const struct capture_options *o, const struct target *target)
{
	const struct target_options *t = &o->target;

	if (target_options__any(t)) {
		print_option("pid", t->pids);
		print_option("name", t->name);
		print_option("container", t->container);
		print_option("k8s-pod", t->pod);
		print_option("cgroup", t->cgroup);
	} else if (target->pids.n) {
		/* The process was selected from several. */
		printf(" -pid %d", (int)target->pids.v[0]);
	}
	if (o->children)
		printf(" -children");
}

/* The number of values above a percentile. */
static uint64_t count_above(const struct mt_stats *stats, double percent)
{
	uint64_t all = 0;

	for (int i = 0; i < MT_FINE_BUCKETS; i++)
		all += stats->fine[i];
	return (uint64_t)((double)all * (100 - percent) / 100);
}

/* Prints the attach command with this threshold, ready to be pasted, without the end of the line.
 */
static void print_attach(const struct watch_options *options, const struct target *target,
			 uint64_t ns)
{
	const struct capture_options *o = &options->common;
	char text[UNITS_TEXT_SIZE], *space;

	units__format_duration(text, ns);
	space = strchr(text, ' ');
	if (space)
		memmove(space, space + 1, strlen(space));
	printf("mtbpf attach");
	print_target(o, target);
	for (size_t i = 0; i < o->symbols.n; i++)
		print_option("symbol", o->symbols.v[i]);
	if (o->requests)
		printf(" -requests");
	print_option("start", o->requests ? NULL : o->start);
	print_option("stop", o->requests ? NULL : o->stop);
	print_option("key", o->key);
	print_option("if", o->condition);
	printf(" -%s-thresh %s",
	       options->on_cpu				    ? "cpu"
	       : options->off_cpu			    ? "off-cpu"
	       : options->durations || options->common.stop ? "duration"
							    : "delay",
	       text);
}

/* Offers a threshold that would have triggered on a few of the values. */
static void offer_threshold(const struct watch_options *options, const struct target *target,
			    const struct mt_stats *stats, double percent)
{
	uint64_t ns = mt_stats__percentile(stats, percent);
	uint64_t passed = count_above(stats, percent);

	/* With fewer values the percentile is not known. */
	if (passed < 2 || !ns)
		return;
	print_attach(options, target, ns);
	printf("   # p%g: about %llu of these would have triggered\n", percent,
	       (unsigned long long)passed);
}

/* Offers a threshold between the ordinary values and the outliers. */
static void offer_gap(const struct watch_options *options, const struct target *target,
		      const struct mt_stats *stats)
{
	uint64_t above, ns = mt_stats__gap(stats, &above);

	if (!ns)
		return;
	print_attach(options, target, ns);
	printf("   # in the gap of the table: the %llu above would have triggered\n",
	       (unsigned long long)above);
}

/* Explains why hits may be missing: a child does the work, or the function is not called. */
static void hint_at_no_hits(const struct capture_options *o, const struct target *target)
{
	if (o->condition) {
		log__hint("no hit matched -if: 'mtbpf watch' without -if shows whether there are "
			  "hits at all");
		return;
	}
	if (target__blame_children(target, o->children))
		return;
	if (o->requests && o->key)
		log__hint("no answer had the -key of a request that was read before: the server "
			  "may answer on another socket (leave out -key then), or use other system "
			  "calls (recvmmsg and sendmmsg, or io_uring)");
	else if (o->requests)
		log__hint("no thread wrote to a socket after it had read from one: the server may "
			  "use other system calls (recvmmsg and sendmmsg, or io_uring); 'strace -c "
			  "-f' shows them, and -start and -stop take those that strace shows");
	/* A plain name is a function's. */
	if (o->symbols.n && !strchr(o->symbols.v[0], ':'))
		log__hint("no thread called the function while mtbpf watched: the compiler may "
			  "have inlined it, or the work is done elsewhere; 'mtbpf list' shows "
			  "other functions, and a server can be measured without one: -requests");
}

static int watch(const struct watch_options *options, const struct target *target,
		 const struct trigger *trigger)
{
	uint64_t began = clock__now_ns();
	char text[STATUS_TEXT_SIZE];
	struct status_view view;
	struct mt_stats stats;
	int err;

	interrupts__hold();
	log__info("watching; Ctrl-C ends it");
	err = wait_for_end(options, target, trigger);
	if (!err)
		err = trigger__stats(trigger, &stats);
	if (err) {
		log__error("cannot read the counters: %s", strerror(-err));
		log__hint(err == -ENOMEM ? "free memory"
					 : "'mtbpf check' shows what works on this machine");
		return err;
	}
	view = hit_status__view(&stats, stats.hits, clock__now_ns() - began);
	puts(status__format(text, &view));
	print_histogram(&stats, options->on_cpu				     ? "time on the CPU"
				: options->off_cpu			     ? "time off the CPU"
				: options->durations || options->common.stop ? "duration"
									     : "delay");
	/* attach measures time on and off the CPU between hits only together with -delay-thresh. */
	if ((!options->on_cpu && !options->off_cpu) || options->durations || options->common.stop) {
		offer_threshold(options, target, &stats, 99.9);
		offer_threshold(options, target, &stats, 99);
		/* With few values, offers a threshold that at least some of them pass. */
		if (count_above(&stats, 99) < 2)
			offer_threshold(options, target, &stats, 90);
		offer_gap(options, target, &stats);
	}
	if (!stats.hits)
		hint_at_no_hits(&options->common, target);
	say_drops(&stats, options->common.reads.has_key && options->common.start);
	return 0;
}

static int refuse_cpu_measure(bool is_go)
{
	log__error("watch: -on-cpu and -off-cpu: %s",
		   is_go ? "calls of Go functions belong to goroutines, not to threads"
			 : "the time since mtbpf_mark_start() is not counted");
	log__hint("leave out -durations: -on-cpu and -off-cpu then measure the time between two "
		  "hits of one thread");
	return -EINVAL;
}

static int attach_and_watch(const struct watch_options *options, const struct target *target,
			    const struct watched *watched)
{
	const struct probes *probes = &watched->probes;
	bool has_regions = start_stop__any(&watched->regions);
	/* With -start and -stop the stops are the hits. */
	const struct probes *hits = has_regions ? &watched->regions.stops : probes;
	_cleanup_free_ struct mt_args *args = probes__args(hits);
	_cleanup_free_ struct mt_reads *reads = probes__reads(hits, &watched->regions.starts);
	bool children = options->common.children;
	bool is_one = target->pids.n == 1 && !children;
	struct trigger_config config = {
		.tgid = is_one ? target->pids.v[0] : 0,
		.tgids = target->pids.v,
		.n_tgids = is_one ? 0 : target->pids.n,
		.with_children = children,
		.of_cgroup = target__is_cgroup(target),
		.cgroup_fd = target->cgroup.fd,
		.count_only = true,
		.by_links = uprobe_link__is_supported() &&
			    !(is_one && process__has_workers(target->pids.v[0])),
		.watch_duration = options->durations || has_regions,
		.cpu_measure = options->on_cpu	  ? MT_CPU_ON
			       : options->off_cpu ? MT_CPU_OFF
						  : MT_CPU_ALL,
		.terms = options->common.reads.filter.terms,
		.n_terms = options->common.reads.filter.n,
		.args = args,
		.n_args = (uint32_t)hits->all.n,
		.reads = reads,
		.n_reads = (uint32_t)(hits->all.n + watched->regions.starts.all.n),
		.by_key = options->common.reads.has_key,
		.limits = options->common.limits,
		.stall_from = has_regions					   ? MT_STALL_REGION
			      : options->durations && !probes__are_library(probes) ? MT_STALL_CALL
										   : MT_STALL_HIT,
		.regions = has_regions,
		.stop_triggers = has_regions,
		.since_mark = probes__are_library(probes),
		.mark_offset_ns = time_namespace__offset_ns(watched->pid)};
	struct gate gate;
	int err = args && reads ? 0 : -ENOMEM;

	if (!err && config.limits.stall_thresh_ns && config.stall_from == MT_STALL_CALL)
		err = stall__refuse_go(probes);
	if (!err && trigger__needs_return(&config))
		err = probes__choose_returns(probes, options->common.return_probes,
					     hit_reads__of_return(&options->common.reads),
					     &config.returns_by_insn);
	config.by_goroutine = config.returns_by_insn && probes__are_go(probes);
	if (!err && config.cpu_measure &&
	    (config.by_goroutine || (config.since_mark && options->durations)))
		err = refuse_cpu_measure(config.by_goroutine);
	if (err)
		return err;
	err = gate__open(&gate, &config,
			 &(struct gate_probes){.v = probes->all.v,
					       .n = probes->all.n,
					       .regions = &watched->regions});

	if (!err)
		err = gate__attach(&gate, NULL, NULL);
	/* Armed only for the hit that reports the end of -max-hits. */
	if (!err)
		err = trigger__arm(gate.trigger);
	if (!err)
		err = watch(options, target, gate.trigger);
	gate__close(&gate);
	return err;
}

static int choose_symbols(const struct watch_options *options, const struct probe_source *source,
			  struct selectors *symbols)
{
	const char *own = options->common.symbols.n ? NULL
			  : source->process	    ? default_trigger__find(source->process, NULL)
						    : programs__default_trigger(source->programs);
	int err = own ? selectors__add(symbols, own)
		      : selectors__split(symbols, &options->common.symbols, "-symbol");

	if (!err)
		err = selectors__replace_dot(symbols, source);
	if (err || symbols->names.n)
		return err;
	log__error("watch: no function given, and %s mtbpf_take_snapshot()",
		   source->process ? "the program does not contain"
				   : "no program of the target contains");
	log__hint("add -symbol NAME ('mtbpf list' shows names)");
	return -EINVAL;
}

static int find_in(const struct watch_options *options, const struct probe_source *source,
		   struct watched *watched)
{
	const struct hit_reads *reads = &options->common.reads;
	struct selectors symbols = {0};
	int err;

	if (options->common.stop) {
		err = start_stop__find(&watched->regions, &options->common, source);
		return err ? err
			   : hit_reads__check(reads, watched->regions.stops.all.v,
					      watched->regions.stops.all.n, false);
	}
	err = choose_symbols(options, source, &symbols);
	if (!err)
		err = probes__find(&watched->probes, &symbols, source);
	if (!err)
		err = hit_reads__check(reads, watched->probes.all.v, watched->probes.all.n, false);
	selectors__fini(&symbols);
	return err || !options->durations ? err : probes__check_calls(&watched->probes);
}

static int find_probes(const struct watch_options *options, const struct target *target,
		       struct watched *watched)
{
	struct probe_source source = {.reads = &options->common.reads};
	struct programs programs;
	struct process process;
	int err;

	if (target->pids.n == 1) {
		watched->pid = target->pids.v[0];
		err = process__open(&process, watched->pid);
		if (err)
			return err;
		source.process = &process;
		err = find_in(options, &source, watched);
		process__close(&process);
		return err;
	}
	err = programs__open(&programs, target);
	source.programs = &programs;
	if (!err)
		err = find_in(options, &source, watched);
	if (!err)
		watched->pid = programs__first(&programs)->pid;
	programs__fini(&programs);
	return err;
}

static int find_and_watch(const struct watch_options *options, const struct target *target)
{
	struct watched watched = {0};
	int err = find_probes(options, target, &watched);

	if (!err)
		err = probes__check_jit(&watched.probes, &watched.regions,
					target->pids.n == 1 && !options->common.children);
	if (!err)
		err = attach_and_watch(options, target, &watched);
	probes__fini(&watched.probes);
	start_stop__fini(&watched.regions);
	return err;
}

static int check(struct watch_options *options)
{
	int err = capture_options__check(&options->common, watch_table.command);

	if (!err && options->on_cpu && options->off_cpu) {
		log__error("watch: -on-cpu and -off-cpu cannot both be given");
		log__hint("-on-cpu is the time on a CPU, -off-cpu the rest: choose one");
		return -EINVAL;
	}
	if (!err && options->common.reads.has_key &&
	    (options->durations || options->on_cpu || options->off_cpu ||
	     options->common.limits.stall_thresh_ns)) {
		log__error("watch: -key cannot be combined with -durations, -on-cpu, -off-cpu and "
			   "-stall-thresh, which measure threads");
		log__hint("use -start A -stop B -key arg1, which measures from A to the B with the "
			  "same argument");
		return -EINVAL;
	}
	if (!err && hit_reads__of_return(&options->common.reads) && !options->durations) {
		log__error("watch: -if: retval is known only when a call returns");
		log__hint("add -durations");
		return -EINVAL;
	}
	if (err || !options->common.stop || (!options->common.symbols.n && !options->durations))
		return err;
	log__error("watch: -start and -stop cannot be combined with %s",
		   options->durations ? "-durations" : "-symbol");
	log__hint("use -start A -stop B for the time between the two, or -symbol F -durations for "
		  "calls");
	return -EINVAL;
}

int cmd_watch(int argc, char **argv)
{
	struct watch_options options = {.common = CAPTURE_DEFAULTS};
	struct target target;
	int rest, err;

	err = options__parse(&watch_table, &options, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (check(&options))
		return EXIT_USAGE;
	if (rest < argc)
		return refuse_word(&watch_table, argv[rest]);
	err = target__choose(&target, &options.common.target);
	if (!err)
		err = find_and_watch(&options, &target);
	else if (err == -ENODATA) {
		log__error("watch: no process given");
		log__hint("usage: mtbpf %s", watch_table.usage);
	}
	target__close(&target);
	return exit_code_for(err);
}
