// SPDX-License-Identifier: MIT
/* Chooses and opens what a session records with: source, unwinder, gate and recorder. */
#include "session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/code/live_code.h"
#include "capture/pt/pmu.h"
#include "capture/pt/pt_source.h"
#include "capture/sample/sample_ring.h"
#include "sampled/sample_stack.h"
#include "session/session_internal.h"
#include "target/trace_places.h"
#include "trigger/recorder.h"
#include "util/cleanup.h"
#include "util/log.h"

static const struct source_ops *ops_of(const struct capture_options *o)
{
#define SOURCE_OPS(number, name) &source_##name,
	/* The sources in the order of their numbers; SOURCE_AUTO (0) has none. */
	static const struct source_ops *const all[] = {SOURCES(SOURCE_OPS)};
	struct pt_pmu pmu;

	if (o->source != SOURCE_AUTO)
		return all[o->source - 1];
	/* If an option needs Intel PT, source_pt.probe() reports that it is missing. */
	if (o->immediate_stop || o->power || o->freeze_method || o->kernel_only || o->full ||
	    !pt_pmu__read(&pmu))
		return &source_pt;
	log__info("no Intel PT here: using -source sample, which records stacks, not every call");
	return &source_sample;
}

/* Warns of options that this source ignores. */
static void say_without_effect(const struct capture_options *o, const struct source_ops *ops)
{
	const struct {
		bool is_given;
		const char *name;
		const struct source_ops *of;
		const char *others; /* why other sources do not need the option; or NULL */
	} all[] = {
		{o->multi_thread && !o->full, "-multi-thread", &source_pt,
		 "this source records every thread anyway"},
		{strcmp(o->resolution, "normal"), "-timer-resolution", &source_pt, NULL},
		{o->freeze_method, "-freeze", &source_pt, NULL},
		{o->immediate_stop, "-immediate-stop", &source_pt,
		 "nothing is recorded after the trigger anyway"},
		{o->sample.rate != SAMPLE_RATE_AUTO, "-sample-rate", &source_sample,
		 "this source follows every call"},
		{o->sample.unwind != UNWIND_AUTO, "-unwind", &source_sample,
		 "this source follows every call"},
		{o->sample.syscall_thresh_ns, "-syscall-thresh", &source_sample, NULL},
		{o->truth, "-truth", &source_soft, NULL},
		{o->no_ret_compression, "-no-ret-compression", &source_soft, NULL},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].is_given && all[i].of != ops)
			log__warn("%s is ignored with -source %s%s%s", all[i].name, ops->name,
				  all[i].others ? ": " : "", all[i].others ?: "");
}

const struct source_ops *source_choice__make(const struct capture_options *options)
{
	const struct source_ops *ops = ops_of(options);
	int err = ops->probe ? ops->probe() : 0;

	if (!err) {
		say_without_effect(options, ops);
		return ops;
	}
	errno = -err;
	return NULL;
}

int source_choice__check(const struct source_ops *ops, const struct process *process, size_t n)
{
	char name[PROCESS_COMM_SIZE];
	pid_t tracer;

	if (!ops->steps)
		return 0;
	if (n != 1) {
		log__error("-source soft traces one process, but several were given");
		log__hint("choose one with -pid PID");
		return -EINVAL;
	}
	/* Checked before probes are set in the target; ptrace itself would only report EPERM. */
	tracer = process__tracer(process->pid);
	if (!tracer)
		return 0;
	process__thread_name(tracer, tracer, name);
	log__error("process %d (%s) is already traced by process %d (%s)", process->pid,
		   process->comm, tracer, name);
	log__hint("a process can have only one tracer: end that one, or wait for its end");
	return -EBUSY;
}

#define TRIAL_MS   100
#define TRIAL_HZ   1000
#define TRIAL_RING (256u << 10)
/*
 * A process that does little yields few stacks: trials are repeated, at most TRIALS times, until
 * there are TRIAL_STACKS stacks. Fewer stacks may all be of threads that do not matter.
 */
#define TRIALS	     3
#define TRIAL_STACKS 10

static uint32_t bytes_of(const struct capture_options *o)
{
	return o->no_stack_copy ? 0 : (uint32_t)o->sample.stack_copy & ~7u;
}

/*
 * Records samples for TRIAL_MS, with both frame pointers and copies of the stack; adds the counts
 * to *found.
 */
static int try_both(const struct capture_options *o, const struct process *process,
		    const struct cgroup *cgroup, struct chain_count *found, size_t *samples)
{
	struct source_config config = {.pid = process->pid,
				       .cgroup = cgroup,
				       .snapshot_size = TRIAL_RING,
				       .max_memory = o->max_memory,
				       .sample_rate = TRIAL_HZ,
				       .sample_stack = bytes_of(o),
				       .sample_gate = -1,
				       .is_silent = true,
				       .freeze_fd = -1};
	pid_t pid = process->pid;
	struct pid_set pids = {.v = &pid, .n = 1};
	struct source *source = NULL;
	struct images *images;
	struct recording rec;
	int err;

	recording__init(&rec);
	rec.pid = process->pid;
	err = vdso_image__add(&rec, process);
	if (!err)
		err = live_code__take(&rec, &pids, NULL);
	if (!err) {
		source = source_sample.open(&config);
		err = source ? source_sample.start(source) : -1;
	}
	if (!err) {
		usleep(1000 * TRIAL_MS);
		err = source_sample.freeze(source);
	}
	if (!err)
		err = source_sample.read(source, &rec);
	source_sample.close(source);
	*samples += rec.samples.n;
	images = err ? NULL : images__new(&rec);
	if (!err)
		err = images ? sample_stack__count(&rec, images, found) : -1;
	images__free(images);
	recording__fini(&rec);
	return err;
}

static int judge(const struct capture_options *o, const struct process *process,
		 const struct cgroup *cgroup, struct unwind_choice *choice)
{
	struct chain_count found = {0};
	size_t samples = 0;
	int err = 0;

	for (int i = 0; i < TRIALS && !err && found.unwound < TRIAL_STACKS; i++)
		err = try_both(o, process, cgroup, &found, &samples);
	if (err)
		return err;
	log__debug("unwind: %zu stacks; %zu could be unwound, %zu as far by frame pointers",
		   samples, found.unwound, found.reach);
	/*
	 * Frame pointers suffice if they reach as far as unwinding in nine of ten stacks. The
	 * others may be deeper than their copy, or end at a switch of stacks.
	 */
	if (found.unwound >= TRIAL_STACKS && found.reach >= found.unwound - found.unwound / 10)
		return 0;
	choice->stack = bytes_of(o);
	choice->calls = !counting__try(COUNTING_CALLS);
	if (found.unwound >= TRIAL_STACKS)
		log__info("unwind: frame pointers lead to the outermost caller in only %zu of %zu "
			  "stacks: mtbpf %s (-unwind fp turns that off)",
			  found.reach, found.unwound,
			  choice->calls
				  ? "records the CPU's call stacks (LBR), and copies the stack "
				    "when a thread goes to sleep"
				  : "copies stacks and unwinds them later");
	return 0;
}

int unwind_choice__make(const struct capture_options *o, const struct process *process,
			const struct cgroup *cgroup, struct unwind_choice *choice)
{
	int err;

	*choice = (struct unwind_choice){0};
	switch (o->sample.unwind) {
	case UNWIND_FP:
		return 0;
	case UNWIND_DWARF:
		choice->stack = bytes_of(o);
		return 0;
	case UNWIND_LBR:
		choice->stack = bytes_of(o);
		err = counting__try(COUNTING_CALLS);
		choice->calls = !err;
		if (!err)
			return 0;
		/* Frame pointers instead would show less without a visible reason. */
		log__error("-unwind lbr: no call stacks by LBR here: %s", strerror(-err));
		log__hint("Intel CPUs since Haswell have LBR call stacks, but hypervisors rarely "
			  "pass LBR on; use -unwind auto");
		return -ENODEV;
	default:
		return bytes_of(o) && process ? judge(o, process, cgroup, choice) : 0;
	}
}

/* True for more than one process, now or later. */
static bool is_of_several(const struct session *s)
{
	return s->pids.n > 1 || (s->options->children && !s->cgroup);
}

/* The only process; 0 if there may be several. */
static pid_t only_pid(const struct session *s)
{
	return s->cgroup || is_of_several(s) ? 0 : s->pids.v[0];
}

/* The stepper finds regions itself, but only the kernel decides whether a region triggers. */
static bool probes_regions(const struct session *s)
{
	return start_stop__any(&s->regions) && (!s->ops->steps || s->regions.stop_triggers);
}

/*
 * A forked child inherits the probes. The kernel removes those of perf events at the child's first
 * hit (uprobe_perf_func() returns UPROBE_HANDLER_REMOVE); those of links stay and cost the child
 * (uprobe_multi_link_handler() does not). A source that opens probe events needs perf events.
 */
static bool can_use_links(const struct session *s)
{
	pid_t pid = only_pid(s);

	return !s->ops->probe_event && uprobe_link__is_supported() &&
	       !(pid && process__has_workers(pid));
}

/* With -cpu-thresh or -off-cpu-thresh, only that threshold may be learned; `t` is fixed. */
static uint64_t whole_threshold(const struct session *s, const struct threshold *t)
{
	if (!threshold__is_set(t))
		return 0;
	return capture_options__cpu_measure(s->options) ? t->ns : s->progress.threshold_ns;
}

/* Most processes to search for trace ids: each takes a millisecond or two. */
#define TRACED_MAX 64

/*
 * Finds where each process keeps its threads' trace ids. Processes that start later, and those
 * beyond the first TRACED_MAX, are not searched.
 */
static int find_trace_places(const struct session *s, struct trigger_trace_places **found,
			     uint32_t *n)
{
	_cleanup_free_ pid_t *of_cgroup = NULL;
	const pid_t *pids = s->pids.v;
	size_t n_pids = s->pids.n;

	if (s->cgroup && target__processes(s->start->target, &of_cgroup, &n_pids))
		return 0;
	if (s->cgroup)
		pids = of_cgroup;
	if (n_pids > TRACED_MAX)
		log__debug("trace ids: only %d of %zu processes are looked at", TRACED_MAX, n_pids);
	*found = calloc(TRACED_MAX, sizeof(**found));
	if (!*found)
		return -ENOMEM;
	for (size_t i = 0; i < n_pids && i < TRACED_MAX; i++) {
		struct trigger_trace_places *next = &(*found)[*n];
		LOG_SILENTLY;
		struct process process = {0};
		bool has;

		next->tgid = pids[i];
		if (s->start->exec_path) {
			has = trace_places__find_in_file(&next->places, s->start->exec_path);
		} else if (s->has_process && s->process.pid == pids[i]) {
			has = trace_places__find(&next->places, &s->process);
		} else {
			has = !process__open(&process, pids[i]) &&
			      trace_places__find(&next->places, &process);
			process__close(&process);
		}
		*n += has;
	}
	return 0;
}

int session__open_gate(struct session *s)
{
	const struct hit_reads *reads_wanted = &s->options->reads;
	_cleanup_free_ struct mt_args *args = probes__args(&s->probes);
	_cleanup_free_ struct mt_reads *reads = probes__reads(&s->probes, &s->regions.starts);
	struct trigger_config config = {
		.tgid = only_pid(s),
		.tgids = s->pids.v,
		.n_tgids = is_of_several(s) ? s->pids.n : 0,
		.with_children = s->options->children,
		.of_cgroup = s->cgroup != NULL,
		.cgroup_fd = s->cgroup ? s->cgroup->fd : -1,
		.delay_thresh_ns = whole_threshold(s, &s->options->delay_thresh),
		.duration_thresh_ns = whole_threshold(s, &s->options->duration_thresh),
		.cpu_measure = capture_options__cpu_measure(s->options),
		.cpu_thresh_ns = s->progress.threshold_ns,
		.stall_from = s->stall_from,
		/*
		 * With -stall-thresh the program asks user space whether a call is still open
		 * (bpf/stall.bpf.h: ask). The stepper would take the question for a hit.
		 */
		.stall_asks = !s->ops->steps,
		.traced_by_us = s->ops->steps,
		.limits = s->options->limits,
		.probe_at_entry = probes__at_entry(&s->probes),
		.since_mark = probes__are_library(&s->probes),
		.mark_offset_ns = s->has_process ? time_namespace__offset_ns(s->process.pid) : 0,
		.args = args,
		.n_args = (uint32_t)s->probes.all.n,
		.reads = reads,
		.n_reads = (uint32_t)(s->probes.all.n + s->regions.starts.all.n),
		.by_key = reads_wanted->has_key,
		.n_prints = reads_wanted->n_prints,
		.terms = reads_wanted->filter.terms,
		.n_terms = reads_wanted->filter.n,
		.regions = probes_regions(s),
		.stop_triggers = s->regions.stop_triggers,
		.only_measured = s->regions.only_measured,
		.sampling = s->ops->samples,
		.branches = s->branches,
		.also = s->also.all.n,
		.also_at_entry = probes__at_entry(&s->also),
		.go_offsets = s->go_waits.offsets,
		.by_links = can_use_links(s),
		.stack_copy = s->options->no_stack_copy ? 0 : (uint32_t)s->options->stack_copy,
	};
	const struct gate_probes probes = {.v = s->probes.all.v,
					   .also = s->also.all.v,
					   .go_waits = &s->go_waits,
					   .n = s->probes.all.n,
					   .n_also = s->also.all.n,
					   .regions = &s->regions,
					   .of_source = s->ops->probe_event,
					   /* The stepper sets a breakpoint at each start place. */
					   .n_breakpoints =
						   s->ops->steps ? s->regions.start_places.n : 0};
	_cleanup_free_ struct trigger_trace_places *trace_places = NULL;
	int err = args && reads ? find_trace_places(s, &trace_places, &config.n_trace_places)
				: -ENOMEM;

	config.trace_places = trace_places;
	if (!err && trigger__needs_return(&config))
		err = probes__choose_returns(&s->probes, s->options->return_probes,
					     hit_reads__of_return(reads_wanted),
					     &config.returns_by_insn);
	config.by_goroutine = config.returns_by_insn && probes__are_go(&s->probes);
	if (!err)
		err = probes__choose_returns(&s->also, s->options->return_probes, NULL,
					     &config.also_by_insn);
	config.also_by_goroutine = config.also_by_insn && probes__are_go(&s->also);
	config.go_waits = config.by_goroutine && s->go_waits.park.all.n;
	if (!err)
		err = gate__open(&s->gate, &config, &probes);
	return err ? err : session__watch_fd(s, trigger__fd(s->gate.trigger));
}

/* A CPU's log must look back as far as its ring. With stack copies, the ring fills faster. */
static size_t log_size(const struct session *s)
{
	return s->snapshot_size / (s->unwind.stack ? 4 : 1);
}

/*
 * True if the recorder writes the stacks of switches into separate rings; perf's rings then contain
 * timed samples only. If kernel frames are wanted, or with return probes, perf takes these stacks.
 */
bool session__has_stack_rings(const struct session *s)
{
	return s->ops->samples && !s->options->kernel && !s->gate.has_return_probes;
}

static size_t stacks_size(const struct session *s)
{
	return session__has_stack_rings(s) ? s->snapshot_size : 0;
}

/*
 * Without the recorder, each thread (except in a cgroup) has its own clock, which slows switches
 * down.
 */
static void open_recorder(struct session *s)
{
	const struct recorder_config config = {
		.tgid = only_pid(s),
		.tgids = s->pids.v,
		.n_tgids = is_of_several(s) ? s->pids.n : 0,
		.with_children = s->options->children,
		.cgroup_fd = s->cgroup ? s->cgroup->fd : -1,
		.syscall_thresh_ns = s->options->sample.syscall_thresh_ns,
		.log_size = log_size(s),
		.stacks_size = stacks_size(s),
		.stack_copy = s->unwind.stack,
		.trigger = s->gate.trigger,
		.with_regions = probes_regions(s) && !s->regions.by_key,
		.from_exec = s->start->exec_path,
	};

	s->recorder = recorder__new(&config);
	if (!s->recorder)
		log__info("sample: cannot record with BPF per CPU (%s): %s, and the trace does not "
			  "name the threads that wake or preempt others",
			  strerror(errno),
			  s->cgroup ? "perf selects the cgroup's threads"
				    : "each thread has its own timer, which makes context switches "
				      "cost more");
}

/*
 * The probe whose instruction the kernel may step as a copy; the decoder knows only one such copy.
 */
static const struct probe *stepped_probe(const struct session *s)
{
	const struct probe *probe = probes__stepped(s->probes.all.n ? &s->probes : &s->also);

	return probe->site.emulated && start_stop__any(&s->regions)
		       ? probes__stepped(&s->regions.starts)
		       : probe;
}

static int add_pid(void *ctx, pid_t pid)
{
	return pid_set__add(ctx, pid);
}

void session__close_source(struct session *s)
{
	if (s->source)
		s->ops->close(s->source);
	s->source = NULL;
}

/* The trigger's programs see each fork. */
static int add_targets(void *ctx, struct pid_set *pids)
{
	return trigger__each_target(ctx, add_pid, pids);
}

int session__open_source(struct session *s)
{
	const struct capture_options *o = s->options;
	/* Adds children forked since the processes were listed. */
	int err = o->children && s->gate.trigger ? add_targets(s->gate.trigger, &s->pids) : 0;
	struct source_config config = {
		.pid = s->cgroup ? 0 : s->pids.v[0],
		.pids = s->cgroup ? NULL : &s->pids,
		.children = o->children,
		.add_targets = o->children && s->gate.trigger ? add_targets : NULL,
		.targets_ctx = s->gate.trigger,
		.cgroup = s->cgroup,
		.snapshot_size = s->snapshot_size,
		.max_memory = o->max_memory,
		.probes = s->gate.of_source.v,
		.n_probes = s->gate.of_source.n,
		.starts = s->regions.start_places.v,
		.n_starts = s->regions.start_places.n,
		.stops = s->regions.stop_places.v,
		.n_stops = s->regions.stop_places.n,
		.first_hit = s->rec->hits.n,
		.multi_thread = o->multi_thread,
		.kernel = o->kernel,
		.kernel_only = o->kernel_only,
		.timing = o->timing,
		.freeze_method = (s->gate.trigger && session__find_unfrozen(s))
					 ? 1 + PT_FREEZE_DISABLE
					 : o->freeze_method,
		.immediate_stop = o->immediate_stop,
		.freeze_fd = s->gate.trigger ? trigger__fd(s->gate.trigger) : -1,
		.from_exec = s->start->exec_path && !s->snapshots,
		.return_probe = s->gate.has_return_probes,
		.sample_rate = s->overhead.hz,
		.sample_stack = s->unwind.stack,
		.sample_calls = s->unwind.calls,
		/* The BPF program that drops samples after the trigger. */
		.sample_gate = s->gate.trigger && s->gate.sampling
				       ? trigger__sample_gate(s->gate.trigger)
				       : -1,
		.branches = s->branches,
		.is_silent = s->snapshots,
		.spool_dir = s->start->spool_dir,
		.truth_path = o->truth,
		.return_compression = !o->no_ret_compression,
	};

	if (s->ops->samples && !s->recorder && !s->snapshots)
		open_recorder(s);
	if (s->recorder) {
		config.sample_by_cpu = true;
		config.sample_gate = recorder__gate(s->recorder);
		config.sample_switch_gate = recorder__switch_gate(s->recorder);
		config.sample_no_stacks = stacks_size(s) != 0;
		config.sample_log = log_size(s) + stacks_size(s);
		recorder__begin(s->recorder);
	}
	if (s->probes.all.n || s->also.all.n)
		memcpy(config.probed, stepped_probe(s)->code, sizeof(config.probed));
	/* With probed return instructions the kernel steps a copy of the return. */
	if (s->gate.by_insn)
		config.probed[0] = 0xc3;
	if (err)
		return err;
	if (s->source && s->ops->resume(s->source, &config))
		session__close_source(s);
	if (!s->source)
		s->source = s->ops->open(&config);
	if (!s->source)
		return -errno;
	if (s->gate.trigger && !s->gate.attached)
		err = gate__attach(&s->gate, s->ops->probe_event, s->source);
	if (!err)
		err = s->ops->start(s->source);
	return err ? err : session__watch_fd(s, s->ops->fd(s->source));
}
