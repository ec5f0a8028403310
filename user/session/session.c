// SPDX-License-Identifier: MIT
#include "session/session_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "capture/sample/last_branches.h"
#include "util/interrupts.h"
#include "session/probe/probe.h"
#include "session/sampling.h"
#include "session/source_choice.h"
#include "target/time_namespace.h"
#include "trigger/pressure.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

static int watch_fd(struct session *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* More than one process, now or later. */
static bool is_of_several(const struct session *s)
{
	return s->pids.n > 1 || (s->options->children && !s->cgroup);
}

/* The one process; 0: it is not one. */
static pid_t only_pid(const struct session *s)
{
	return s->cgroup || is_of_several(s) ? 0 : s->pids.v[0];
}

/* The stepper looks where they are by itself; but what triggers is for the kernel to say. */
static bool probes_regions(const struct session *s)
{
	return start_stop__any(&s->regions) && (!s->ops->steps || s->regions.stop_triggers);
}

static int open_gate(struct session *s)
{
	_cleanup_free_ struct mt_args *args = probes__args(&s->probes);
	struct trigger_config config = {
		.tgid = only_pid(s),
		.tgids = s->pids.v,
		.n_tgids = is_of_several(s) ? s->pids.n : 0,
		.with_children = s->options->children,
		.of_cgroup = s->cgroup != NULL,
		.cgroup_fd = s->cgroup ? s->cgroup->fd : -1,
		.delay_thresh_ns =
			threshold__is_set(&s->options->delay_thresh) ? s->progress.threshold_ns : 0,
		.duration_thresh_ns = session__measures_duration(s) ? s->progress.threshold_ns : 0,
		.after_ns = s->options->after_ns,
		.min_interval_ns = s->options->min_interval_ns,
		.n_skipped = (uint64_t)s->options->skip,
		.max_hits = (uint64_t)s->options->max_hits,
		.probe_at_entry = probes__at_entry(&s->probes),
		.since_mark = probes__are_library(&s->probes),
		.mark_offset_ns = s->has_process ? time_namespace__offset_ns(s->process.pid) : 0,
		.args = args,
		.n_args = (uint32_t)s->probes.all.n,
		.regions = probes_regions(s),
		.stop_triggers = s->regions.stop_triggers,
		.sampling = s->ops->samples,
		.branches = s->branches,
		.also = s->also.all.n,
		.also_at_entry = probes__at_entry(&s->also),
		.stack_copy = s->options->no_stack_copy ? 0 : (uint32_t)s->options->stack_copy,
	};
	const struct gate_probes probes = {s->probes.all.v, s->also.all.v, s->probes.all.n,
					   s->also.all.n, &s->regions};
	int err = args ? 0 : -ENOMEM;

	if (!err && trigger__needs_return(&config))
		err = probes__choose_returns(&s->probes, s->options->return_probes,
					     &config.returns_by_insn);
	config.by_goroutine = config.returns_by_insn && probes__are_go(&s->probes);
	if (!err)
		err = probes__choose_returns(&s->also, s->options->return_probes,
					     &config.also_by_insn);
	config.also_by_goroutine = config.also_by_insn && probes__are_go(&s->also);
	if (!err)
		err = gate__open(&s->gate, &config, &probes);
	return err ? err : watch_fd(s, trigger__fd(s->gate.trigger));
}

static int open_loop(struct session *s)
{
	s->signal_fd = s->start->observer ? interrupts__open_with_requests() : interrupts__open();
	if (s->signal_fd < 0)
		return s->signal_fd;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	return watch_fd(s, s->signal_fd);
}

/* A log of a CPU looks back as far as its ring, where each switch has a stack there, or further. */
static size_t log_size(const struct session *s)
{
	return s->snapshot_size / (s->unwind.stack ? 8 : 1);
}

/* Where the kernel cannot, or we may not: a clock for each thread, which costs at each switch. */
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
		.trigger = s->gate.trigger,
		.with_regions = probes_regions(s),
		.from_exec = s->start->exec_path,
	};

	s->recorder = recorder__new(&config);
	if (!s->recorder)
		log__info(
			"sample: no recorder per CPU (%s): %s, and nobody is known by whom threads "
			"are woken or replaced",
			strerror(errno),
			s->cgroup ? "perf tells the cgroup's threads apart"
				  : "each thread has a clock, which makes its switches dearer");
}

static int attach_gate(struct session *s)
{
	int *events, err;
	size_t n = s->gate.n_deciding;

	if (!s->ops->probe_event)
		return gate__attach(&s->gate, NULL);
	events = calloc(n, sizeof(*events));
	for (size_t i = 0; events && i < n; i++)
		events[i] = s->ops->probe_event(s->source, i);
	err = events ? gate__attach(&s->gate, events) : -ENOMEM;
	free(events);
	return err;
}

/* Whose instruction the kernel may step a copy of: one copy is known to the decoder. */
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

int session__open_source(struct session *s)
{
	const struct capture_options *o = s->options;
	/* What has been forked since they were listed. */
	int err = o->children && s->gate.trigger
			  ? trigger__each_target(s->gate.trigger, add_pid, &s->pids)
			  : 0;
	struct source_config config = {
		.pid = s->cgroup ? 0 : s->pids.v[0],
		.pids = s->cgroup ? NULL : &s->pids,
		.children = o->children,
		.cgroup = s->cgroup,
		.snapshot_size = s->snapshot_size,
		.max_memory = o->max_memory,
		.probes = s->gate.specs.v,
		.n_probes = s->gate.n_deciding,
		.starts = s->regions.start_places.v,
		.n_starts = s->regions.start_places.n,
		.stops = s->regions.stop_places.v,
		.n_stops = s->regions.stop_places.n,
		.first_hit = s->rec->hits.n,
		.multi_thread = o->multi_thread,
		.kernel = o->kernel,
		.kernel_only = o->kernel_only,
		.timing = o->timing,
		.freeze_method = o->freeze_method,
		.immediate_stop = o->immediate_stop,
		.freeze_fd = s->gate.trigger ? trigger__fd(s->gate.trigger) : -1,
		.from_exec = s->start->exec_path && !s->snapshots,
		.return_probe = s->gate.has_return_probes,
		.sample_rate = s->overhead.hz,
		.sample_stack = s->unwind.stack,
		.sample_calls = s->unwind.calls,
		.sample_gate = gate__of_samples(&s->gate),
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
		config.sample_stacks = recorder__stack_events(s->recorder);
		config.sample_log = log_size(s);
		recorder__begin(s->recorder);
	}
	if (s->probes.all.n || s->also.all.n)
		memcpy(config.probed, stepped_probe(s)->code, sizeof(config.probed));
	/* Of these it is the return that the kernel steps a copy of. */
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
		err = attach_gate(s);
	if (s->ops->samples && !s->pressure && !s->snapshots)
		s->pressure = pressure__new();
	if (!err)
		err = s->ops->start(s->source);
	return err ? err : watch_fd(s, s->ops->fd(s->source));
}

/* Not for `run`: its program is not there yet. Of several processes what triggers chooses one. */
static int open_target(struct session *s)
{
	const struct target *target = s->start->target;
	int err;

	if (!target)
		return pid_set__add(&s->pids, s->start->pid);
	err = pid_set__add_all(&s->pids, &target->pids);
	if (target__is_cgroup(target))
		s->cgroup = &target->cgroup;
	if (!err && s->pids.n == 1)
		err = s->options->kernel ? process__open_any(&s->process, s->pids.v[0])
					 : process__open(&s->process, s->pids.v[0]);
	else if (!err)
		return programs__open(&s->programs, target);
	s->has_process = !err;
	return err;
}

static int choose_sampling(struct session *s)
{
	static const struct pid_set none = {0};
	int err = unwind_choice__make(s->options, s->has_process ? &s->process : NULL, s->cgroup,
				      &s->unwind);

	return err ? err
		   : sampling__choose_rate(&s->options->sample, s->unwind.stack, s->options->kernel,
					   s->start->target ? &s->pids : &none, &s->overhead);
}

/* Its functions are the kernel's, in which no uprobe can be. */
static int check_kernel_thread(const struct session *s)
{
	if (!s->options->symbols.n && !s->options->start && !s->options->sample.also.n)
		return 0;
	log__error("%d (%s) is a kernel thread, and has no functions of a program", s->process.pid,
		   s->process.comm);
	log__hint("leave -symbol, -start and -also out: Ctrl-C, or -timeout, takes the snapshot");
	return -EINVAL;
}

static int prepare(struct session *s)
{
	int err;

	s->ops = source_choice__make(s->options);
	if (!s->ops)
		return -errno;
	err = open_target(s);
	if (!err && s->process.is_kernel_thread)
		err = check_kernel_thread(s);
	if (!err)
		err = session__choose_symbols(s);
	if (!err)
		err = session__find_trigger(s);
	if (!err)
		err = open_loop(s);
	if (!err && s->ops->samples)
		err = choose_sampling(s);
	/* The CPU notes either. */
	s->branches =
		!err && s->ops->samples && !s->unwind.calls && !counting__try(COUNTING_BRANCHES);
	if (!err && s->ops->samples && !s->branches && !s->unwind.calls)
		log__debug("sample: no last branches (LBR): this CPU has none, or hides them");
	progress__init(&s->progress, s->options);
	if (!err && (s->probes.all.n || s->also.all.n))
		err = open_gate(s);
	if (!err)
		session__measure_hits(s);
	session__fit_lookback(s);
	return err;
}

struct session *session__open(const struct capture_options *options,
			      const struct session_start *start)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return NULL;
	s->options = options;
	s->start = start;
	s->epoll_fd = s->signal_fd = -1;
	s->deadline_ns = UINT64_MAX;
	err = prepare(s);
	if (!err)
		return s;
	session__close(s);
	errno = -err;
	return NULL;
}

void session__close(struct session *s)
{
	if (!s)
		return;
	session__close_source(s);
	recorder__free(s->recorder);
	pressure__free(s->pressure);
	gate__close(&s->gate);
	programs__fini(&s->programs);
	probes__fini(&s->probes);
	start_stop__fini(&s->regions);
	probes__fini(&s->also);
	selectors__fini(&s->symbols);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	if (s->has_process)
		process__close(&s->process);
	pid_set__fini(&s->pids);
	free(s->witnesses);
	free(s);
}

void session__hold_fire(struct session *s, uint64_t until_ns)
{
	s->hold_ns = s->gate.trigger ? until_ns : 0;
}

pid_t session__pid(const struct session *s)
{
	return s->has_process ? s->process.pid : s->start->pid;
}

const char *session__probe_name(const struct session *s)
{
	return s->probes.name;
}

int session__capture(const struct capture_options *options, const struct session_start *start,
		     struct recording *rec, enum session_end *end)
{
	struct session *s = session__open(options, start);
	bool more = s;
	int err = s ? 0 : -errno;

	while (more) {
		err = session__next(s, rec, end);
		more = !err && session__wants_more(s, *end);
		if (more)
			log__info("snapshot %d taken", s->snapshots);
	}
	if (!err)
		progress__say(&s->progress, session__trigger(s), s->probes.name);
	session__close(s);
	return err;
}
