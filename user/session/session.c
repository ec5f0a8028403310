// SPDX-License-Identifier: MIT
#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/code/live_code.h"
#include "capture/sample/sample_ring.h"
#include "session/session_internal.h"
#include "target/process.h"
#include "trigger/recorder.h"
#include "util/clock.h"
#include "util/names.h"
#include "util/signals.h"
#include "util/log.h"
#include "util/units.h"

/* The checks for replaced processes may take at most 1/LOOK_SHARE of our time. */
#define LOOK_SHARE 20

static bool is_mapping_of(const struct probe *probe, const struct mapping *m)
{
	return !probe__in_kernel(probe) && m->ino == probe->file.ino && m->maj == probe->file.maj &&
	       m->min == probe->file.min;
}

static bool are_in_memory(const struct probes *probes, const struct mappings *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		for (size_t p = 0; p < probes->all.n && mapping__is_memory(&maps->v[i]); p++)
			if (is_mapping_of(&probes->all.v[p], &maps->v[i]))
				return true;
	return false;
}

static bool are_copied_of(const struct session *s, pid_t pid)
{
	_cleanup_mappings_ struct mappings maps = {0};

	/*
	 * If another process cannot be read, it has exited, and its code cannot be copied any more.
	 * For the session's own process, assume that code is copied.
	 */
	if (mappings__read(&maps, pid))
		return pid == session__pid(s);
	return are_in_memory(&s->probes, &maps) || are_in_memory(&s->also, &maps) ||
	       are_in_memory(&s->regions.starts, &maps) || are_in_memory(&s->regions.stops, &maps);
}

/*
 * True if the recording copies code with a probe from memory, since no file has it: the probe must
 * be removed first.
 */
static bool probes_are_copied(const struct session *s)
{
	bool are = !s->programs.all.n && are_copied_of(s, session__pid(s));

	for (size_t i = 0; i < s->programs.all.n && !are; i++)
		are = are_copied_of(s, s->programs.all.v[i].process.pid);
	return are;
}

/*
 * Notes this process for the probes whose file it maps, if no living process is noted for them.
 * Returns the number of probes that still have none.
 */
static size_t note_mapped(struct session *s, pid_t pid)
{
	struct process process;
	bool is_open = !process__open(&process, pid);
	size_t left = 0;

	for (size_t i = 0; i < s->probes.all.n; i++) {
		const struct probe *probe = &s->probes.all.v[i];
		/* Every process can hit a probe in the kernel, for example by a system call. */
		bool maps = probe__in_kernel(probe);

		for (size_t m = 0; is_open && m < process.maps.n && !maps; m++)
			maps = is_mapping_of(probe, &process.maps.v[m]);
		if (is_open && maps && !process__alive(s->mapped_by[i]))
			s->mapped_by[i] = pid;
		left += !process__alive(s->mapped_by[i]);
	}
	if (is_open)
		process__close(&process);
	return left;
}

/* The number of probes whose file no process of the cgroup maps. */
static size_t count_unmapped(struct session *s, const struct target *target)
{
	size_t n, left = s->probes.all.n;
	pid_t *pids;

	if (target__processes(target, &pids, &n))
		return 0;
	for (size_t i = 0; i < n && left; i++)
		left = note_mapped(s, pids[i]);
	free(pids);
	return left;
}

/* True if a process that started later, or in a cgroup a new program, has the function. */
static bool look_for_new(struct session *s)
{
	LOG_SILENTLY;
	struct target target, fresh = {.cgroup.fd = -1};
	struct programs programs = {0};
	bool replaced = false;

	if (target__choose(&target, &s->options->target)) {
		replaced = false;
	} else if (target__is_cgroup(&target)) {
		replaced = count_unmapped(s, &target) && !programs__open(&programs, &target);
		if (replaced)
			programs__remove(&programs, &s->programs);
	} else {
		int err = 0;

		for (size_t i = 0; i < target.pids.n && !err; i++)
			if (!pid_set__has(&s->pids, target.pids.v[i]))
				err = pid_set__add(&fresh.pids, target.pids.v[i]);
		replaced = !err && fresh.pids.n && !programs__open(&programs, &fresh);
	}
	replaced = replaced && VEC_FIND(&s->symbols.names, name, programs__have(&programs, *name));
	programs__fini(&programs);
	target__close(&fresh);
	target__close(&target);
	return replaced;
}

/*
 * True if some processes have exited, and new processes have the function but no probe. In a cgroup
 * only new programs count. Cheap while all processes live.
 */
static bool is_replaced(struct session *s)
{
	uint64_t now = clock__now_ns();
	bool replaced;

	if (!s->probes.all.n || !s->start->target || !target_options__name(&s->options->target) ||
	    now < s->look_ns)
		return false;
	if (!s->mapped_by)
		s->mapped_by = calloc(s->probes.all.n, sizeof(*s->mapped_by));
	/* A cheap check before look_for_new(). */
	if (!s->mapped_by ||
	    !(VEC_FIND(&s->pids, pid, !process__alive(*pid)) ||
	      (s->cgroup && FIND_IN(s->mapped_by, s->probes.all.n, pid, !process__alive(*pid)))))
		return false;
	replaced = look_for_new(s);
	s->look_ns = clock__now_ns() + LOOK_SHARE * (clock__now_ns() - now);
	return replaced;
}

#define STATUS_INTERVAL_NS 1000000000ull

static void tell_observer(const struct session *s)
{
	const struct session_observer *observer = s->start->observer;
	struct mt_stats stats;

	if (observer && s->gate.trigger && !trigger__stats(s->gate.trigger, &stats))
		observer->on_counters(observer->ctx, &stats, s->progress.threshold_ns, s->armed);
}

static int arm(struct session *s)
{
	struct mt_stats stats;
	int err;

	if (!s->gate.trigger || s->armed || clock__now_ns() < s->hold_ns)
		return 0;
	tell_observer(s);
	/* Hits that passed the threshold since the last arming got no snapshot. */
	if (!trigger__stats(s->gate.trigger, &stats)) {
		if (s->snapshots)
			s->rec->drops[DROP_BUSY] += stats.unarmed - s->at_arm.unarmed;
		s->at_arm = stats;
	}
	err = trigger__arm(s->gate.trigger);
	s->armed = !err;
	s->hold_ns = 0;
	return err;
}

/* The child that waits for us: the target of `run`, or the command beside it. 0: none. */
static pid_t child_of(const struct session *s)
{
	return s->start->exec_path ? s->start->pid : s->start->command;
}

/* Returns 1 and sets *end if the wait is over, 0 if it goes on, or -errno. */
static int look(struct session *s, enum session_end *end)
{
	struct signalfd_siginfo info;
	siginfo_t ended = {0}; /* WNOWAIT leaves the child to the code that started it */
	int got = s->gate.trigger ? gate__take_hit(&s->gate, s->rec) : 0;

	if (got < 0)
		return got;
	if (got)
		*end = s->rec->hits.v[s->rec->hits.n - 1].reason == MT_HIT_LAST ? SESSION_HITS_OVER
										: SESSION_TRIGGERED;
	else if (s->ops->state(s->source) == SOURCE_EXITED || s->replaced)
		*end = SESSION_EXITED;
	else if (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		*end = info.ssi_signo == SIGUSR1 ? SESSION_ASKED : SESSION_INTERRUPTED;
		/* A terminal sends the signal to the program too; kill(1) sends it only to us. */
		if (child_of(s) && info.ssi_code == SI_USER)
			s->forward = (int)info.ssi_signo;
	} else if (s->start->command &&
		   !waitid(P_PID, (id_t)s->start->command, &ended, WEXITED | WNOHANG | WNOWAIT) &&
		   ended.si_pid)
		*end = SESSION_COMMAND_ENDED;
	else if (clock__now_ns() >= s->deadline_ns)
		*end = SESSION_TIMED_OUT;
	else
		return 0;
	return 1;
}

/* Reads the counters once a second. Returns the time of the next wake-up in *next. */
static int look_each_second(struct session *s, uint64_t *next)
{
	uint64_t now = clock__now_ns();
	char cost[OVERHEAD_TEXT_SIZE];
	int err = 0;

	*next = s->progress.last_ns + STATUS_INTERVAL_NS;
	if (now >= *next) {
		err = session__keep_cost(s, cost);
		progress__look(&s->progress, session__trigger(s), now, cost);
		overhead__say_near(&s->overhead, s->progress.threshold_ns);
		tell_observer(s);
		s->replaced = is_replaced(s);
		session__check_lookback(s);
		if (!s->has_jit_moved)
			s->has_jit_moved = session__has_jit_moved(s);
		*next = now + STATUS_INTERVAL_NS;
	}
	if (s->hold_ns && s->hold_ns < *next)
		*next = s->hold_ns;
	if (s->deadline_ns < *next)
		*next = s->deadline_ns;
	return err;
}

static int wait_for_end(struct session *s, enum session_end *end)
{
	int over;

	*end = SESSION_INTERRUPTED;
	while (!(over = look(s, end))) {
		struct epoll_event events[4];
		uint64_t next, now;
		int timeout_ms;

		over = look_each_second(s, &next);
		if (over)
			break;
		now = clock__now_ns();
		timeout_ms = next > now ? (int)((next - now) / 1000000) + 1 : 0;
		if (epoll_wait(s->epoll_fd, events, 4, timeout_ms) < 0 && errno != EINTR)
			over = -errno;
		else
			over = arm(s);
		if (over)
			break;
	}
	log__end_line();
	overhead__say(&s->overhead, &s->options->sample);
	tell_observer(s);
	s->armed = false;
	return over < 0 ? over : 0;
}

int session__watch_fd(struct session *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_loop(struct session *s)
{
	int err;

	s->signal_fd = s->start->observer ? interrupts__open_with_requests() : interrupts__open();
	if (s->signal_fd < 0)
		return s->signal_fd;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	err = session__watch_fd(s, s->signal_fd);
	if (err || !s->start->command)
		return err;
	s->command_fd = (int)syscall(SYS_pidfd_open, s->start->command, 0);
	return s->command_fd < 0 ? -errno : session__watch_fd(s, s->command_fd);
}

/* Opens the process, unless it is `run`'s, which is not started yet. With several processes
 * choose_process() opens one. */
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
	if (err || !s->process.is_kernel_thread ||
	    (!s->options->symbols.n && !s->options->start && !s->options->sample.also.n))
		return err;
	/* A kernel thread runs only kernel functions, which cannot have uprobes. */
	log__error("%d (%s) is a kernel thread: -symbol, -start and -also cannot be used with it",
		   s->process.pid, s->process.comm);
	log__hint("leave out -symbol, -start and -also: Ctrl-C or -timeout takes the snapshot");
	return -EINVAL;
}

static int choose_sampling(struct session *s)
{
	static const struct pid_set none = {0};
	int err = unwind_choice__make(s->options, s->has_process ? &s->process : NULL, s->cgroup,
				      &s->unwind);

	if (!err)
		err = overhead__measure(&s->options->sample, s->unwind.stack, s->options->kernel,
					s->start->target ? &s->pids : &none, &s->overhead);
	if (err)
		return err;
	/* The CPU records last branches or call stacks, not both. */
	s->branches = !s->unwind.calls && !counting__try(COUNTING_BRANCHES);
	if (!s->branches && !s->unwind.calls)
		log__debug("sample: no last branches (LBR): the CPU lacks or hides them");
	return 0;
}

static int prepare(struct session *s)
{
	int err;

	s->ops = source_choice__make(s->options);
	if (!s->ops)
		return -errno;
	err = open_target(s);
	if (!err)
		err = session__choose_symbols(s);
	if (!err)
		err = session__find_trigger(s);
	if (!err)
		err = open_loop(s);
	if (!err && s->ops->samples)
		err = choose_sampling(s);
	progress__init(&s->progress, s->options);
	if (!err && (s->probes.all.n || s->also.all.n))
		err = session__open_gate(s);
	if (!err)
		session__measure_hits(s);
	session__fit_lookback(s);
	if (!err)
		overhead__say_rate(&s->overhead, &s->options->sample);
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
	s->epoll_fd = s->signal_fd = s->command_fd = -1;
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
	gate__close(&s->gate);
	programs__fini(&s->programs);
	probes__fini(&s->probes);
	start_stop__fini(&s->regions);
	probes__fini(&s->also);
	probes__fini(&s->go_waits.park);
	probes__fini(&s->go_waits.ready);
	probes__fini(&s->go_waits.execute);
	selectors__fini(&s->symbols);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	if (s->command_fd >= 0)
		close(s->command_fd);
	if (s->has_process)
		process__close(&s->process);
	pid_set__fini(&s->pids);
	stalled_threads__free(s->stalled);
	free(s->mapped_by);
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

static uint32_t reason_of(const struct session *s)
{
	if (threshold__is_set(&s->options->delay_thresh))
		return MT_HIT_DELAY;
	if (s->regions.stop_triggers)
		return MT_HIT_REGION;
	if (!session__measures_duration(s))
		return s->options->limits.stall_thresh_ns ? MT_HIT_STALL : MT_HIT_EVERY;
	return probes__are_library(&s->probes) ? MT_HIT_MARK : MT_HIT_DURATION;
}

/* Fills in what a recording has before its first snapshot. */
static int begin_recording(struct session *s)
{
	const struct process *process = s->has_process ? &s->process : NULL;
	const struct capture_options *o = s->options;
	struct recording *rec = s->rec;
	int err = 0;

	rec->pid = process ? process->pid : s->start->pid;
	rec->source = strdup(s->ops->name);
	rec->trigger = strdup(s->probes.name);
	rec->command = strdup(process ? process->comm : s->start->exec_path);
	rec->key = o->key ? strdup(o->key) : NULL;
	if (!rec->source || !rec->trigger || !rec->command || (o->key && !rec->key))
		return -ENOMEM;
	if (rec->key)
		label__clean_in_place(rec->key);
	rec->probe_ip = s->probes.all.n ? s->probes.all.v[0].ip : 0;
	rec->portable = o->portable;
	rec->reason = reason_of(s);
	for (uint32_t i = 0; i < o->reads.n_prints && !err; i++)
		err = recording__add_print(rec, o->reads.prints[i].text);
	/* Samples show the ends of regions themselves; for Intel PT they are noted. */
	for (size_t i = 0; i < s->regions.stop_places.n && !err && !s->ops->samples; i++)
		err = VEC_ADD(&rec->stops, s->regions.stop_places.v[i]);
	if (!err && s->gate.trigger)
		err = trigger__stats(s->gate.trigger, &s->at_begin);
	if (!err)
		err = vdso_image__add(rec, process);
	if (!err && process)
		err = live_code__take(rec, &s->pids, s->cgroup);
	return err;
}

/* Counts hits that the trigger has missed since the recording began. */
static void count_drops(struct session *s)
{
	const struct mt_stats *begin = &s->at_begin;
	struct mt_stats now;

	if (!s->gate.trigger || trigger__stats(s->gate.trigger, &now))
		return;
	s->rec->drops[DROP_TRIGGERS] = now.dropped - begin->dropped;
	s->rec->drops[DROP_UNMEASURED] = now.unmeasured - begin->unmeasured;
	s->rec->drops[DROP_KEYS] = now.evicted - begin->evicted;
	s->rec->drops[DROP_KEYLESS] = now.keyless - begin->keyless;
	if (s->regions.by_key)
		s->rec->drops[DROP_RESTARTED] = now.restarted - begin->restarted;
	s->rec->drops[DROP_MISSED] = now.missed - begin->missed;
}

static int read_snapshot(struct session *s)
{
	size_t first_sample = s->rec->samples.n;
	uint64_t ring_since_ns;
	int err;

	s->rec->threshold_ns =
		s->progress.threshold_ns == UINT64_MAX ? 0 : s->progress.threshold_ns;
	s->rec->stall_thresh_ns = s->options->limits.stall_thresh_ns;
	s->rec->stall_from = s->stall_from;
	s->rec->cpu_measure = capture_options__cpu_measure(s->options);
	/*
	 * The Unix time at 0 of CLOCK_MONOTONIC; a source with another clock adds the clocks'
	 * difference.
	 */
	s->rec->unix_zero_ns = clock__unix_ns() - clock__now_ns();
	count_drops(s);
	free(s->rec->freeze);
	s->rec->freeze = strdup(s->ops->freeze_name(s->source));
	if (s->recorder)
		recorder__stop(s->recorder);
	err = s->rec->freeze ? s->ops->read(s->source, s->rec) : -ENOMEM;
	if (!err && s->unwind.calls)
		err = sampling__settle_calls(s->rec);
	if (!err)
		err = gate__take_entries(&s->gate, s->rec);
	if (!err)
		err = gate__take_regions(&s->gate, s->rec);
	ring_since_ns = s->rec->complete_ns;
	if (!err)
		err = sampling__take_records(s->recorder, s->rec, first_sample);
	if (!err && !s->snapshots && s->rec->complete_ns > ring_since_ns)
		log__info("sample: the logs of context switches are full and look back only %s; "
			  "-snapshot-size sets their size",
			  DURATION(s->rec->frozen_ns - s->rec->complete_ns));
	if (!err)
		err = stall__settle_threads(s);
	if (!s->ops->resume)
		session__close_source(s);
	recording__settle_build_ids(s->rec);
	return err;
}

/* True if the session takes another snapshot after one that ended like this. */
static bool wants_more(const struct session *s, enum session_end end)
{
	int wanted = s->options->multi_snapshot;

	return end == SESSION_TRIGGERED && s->gate.trigger && (!wanted || s->snapshots < wanted);
}

/*
 * Removing a probe takes the kernel some tenths of a second, so the probes stay if another snapshot
 * follows. Otherwise they are removed before the recording is read. If the source owns the probes'
 * events, they are closed with the source.
 */
static void leave_gate(struct session *s, enum session_end end)
{
	bool goes_on = s->start->observer ? end == SESSION_TRIGGERED || end == SESSION_ASKED
					  : wants_more(s, end);

	if (s->gate.trigger)
		gate__freeze(&s->gate);
	if (!goes_on || s->ops->probe_event || probes_are_copied(s))
		gate__detach(&s->gate);
}

/* Takes one snapshot: arms, waits, freezes and reads. */
static int record_one(struct session *s, enum session_end *end)
{
	const struct pid_set *pids;
	int err = session__open_source(s);

	if (!err && s->gate.trigger)
		gate__begin(&s->gate);
	if (!err)
		err = arm(s);
	/* The child waits for this byte. */
	if (!err && child_of(s) && !s->snapshots && write(s->start->go_fd, "g", 1) != 1)
		err = -errno;
	if (err)
		return err;
	/* The time limit starts here: loading BPF programs can take seconds on a busy machine. */
	if (s->options->timeout_ns && s->deadline_ns == UINT64_MAX)
		s->deadline_ns = clock__now_ns() + s->options->timeout_ns;
	if (!s->snapshots)
		session__say_waiting(s);
	overhead__say_near(&s->overhead, s->progress.threshold_ns);
	err = wait_for_end(s, end);
	if (!err)
		err = s->ops->freeze(s->source);
	if (s->forward)
		kill(child_of(s), s->forward);
	if (!err)
		err = stall__take_threads(s);
	s->snapshots++;
	leave_gate(s, *end);
	pids = s->ops->pids ? s->ops->pids(s->source) : NULL;
	if (!err)
		err = live_code__take(s->rec, pids ? pids : &s->pids, s->cgroup);
	return err ? err : read_snapshot(s);
}

int session__next(struct session *s, struct recording *rec, enum session_end *end)
{
	int err = 0;

	s->rec = rec;
	if (s->gate.attached && probes_are_copied(s))
		gate__detach(&s->gate);
	if (!rec->source)
		err = begin_recording(s);
	if (!err)
		err = record_one(s, end);
	return err;
}

/* Returns like session__capture_again(). */
static int capture_once(const struct capture_options *options, const struct session_start *start,
			struct recording *rec, enum session_end *end)
{
	struct session *s = session__open(options, start);
	bool more = s;
	int err = s ? 0 : -errno;

	while (more) {
		err = session__next(s, rec, end);
		more = !err && wants_more(s, *end);
		if (more)
			log__info("snapshot %d taken", s->snapshots);
	}
	if (!err && !progress__say(&s->progress, session__trigger(s), s->probes.shown) &&
	    start->target)
		target__blame_children(start->target, options->children);
	session__close(s);
	return err;
}

static int wait_for_target(const struct capture_options *options, struct target *target,
			   uint64_t deadline_ns)
{
	const char *name = target_options__name(&options->target);
	int err, fd = interrupts__open();

	if (fd < 0)
		return fd;
	if (target__is_alive(target))
		log__info("some processes of %s were restarted: continuing with the processes "
			  "that run now",
			  name);
	else
		log__info("the target has exited before a trigger: continuing when it is running "
			  "again");
	err = target__wait(target, &options->target, fd, deadline_ns);
	close(fd);
	if (err == -EINTR)
		log__error("nothing was recorded: interrupted before %s was running again", name);
	else if (err == -ETIME)
		log__error("nothing was recorded: %s was not running again before -timeout", name);
	else
		return err;
	log__hint("without -symbol mtbpf takes the snapshot when the target exits");
	return -ENOMSG;
}

int session__capture_again(const struct capture_options *options, struct session_start *start,
			   struct recording *rec, enum session_end *end)
{
	struct capture_options left = *options;
	uint64_t deadline =
		options->timeout_ns ? clock__now_ns() + options->timeout_ns : UINT64_MAX;
	int err = capture_once(&left, start, rec, end);

	/* If no hit triggered before the process exited, its successor of this name is recorded. */
	while (!err && *end == SESSION_EXITED && !start->command &&
	       target_options__name(&options->target) && rec->trigger && *rec->trigger &&
	       !rec->hits.n) {
		uint64_t now;

		recording__fini(rec);
		recording__init(rec);
		err = wait_for_target(options, start->target, deadline);
		if (err)
			break;
		now = clock__now_ns();
		if (options->timeout_ns)
			left.timeout_ns = deadline > now ? deadline - now : 1;
		err = capture_once(&left, start, rec, end);
	}
	return err;
}

/* A thread that was sampled for fewer periods than this may just have run too briefly for a stack.
 */
#define PERIODS_MANY 100

/*
 * With samples, an empty snapshot does not prove that nothing ran: a thread that runs for less than
 * a period without going to sleep leaves no stack.
 */
char *empty_snapshot__format(char text[static EMPTY_SNAPSHOT_TEXT_SIZE],
			     const struct recording *rec, pid_t pid)
{
	char who[32] = "any of the processes";

	if (pid)
		snprintf(who, sizeof(who), "process %d", pid);
	if (rec->sample_period_ns)
		snprintf(text, EMPTY_SNAPSHOT_TEXT_SIZE,
			 "nothing was recorded: no stack of %s was taken in %s of sampling", who,
			 DURATION(rec->sampled_ns));
	else if (pid)
		snprintf(text, EMPTY_SNAPSHOT_TEXT_SIZE,
			 "nothing was recorded: %s ran no instruction", who);
	else
		snprintf(text, EMPTY_SNAPSHOT_TEXT_SIZE,
			 "nothing was recorded: none of the processes ran an instruction");
	return text;
}

int empty_snapshot__refuse(const struct recording *rec, pid_t pid)
{
	char text[EMPTY_SNAPSHOT_TEXT_SIZE];
	bool is_short =
		rec->sample_period_ns && rec->sampled_ns < PERIODS_MANY * rec->sample_period_ns;

	log__error("%s", empty_snapshot__format(text, rec, pid));
	if (pid && process__stopped(pid))
		log__hint("the target is stopped: 'kill -CONT %d' lets it run", pid);
	else if (is_short)
		log__hint("stacks are taken after each %s of running time and when a thread goes "
			  "to sleep: record for longer, or raise -sample-rate",
			  DURATION(rec->sample_period_ns));
	else if (pid)
		log__hint("the target may have been asleep: record again while it works");
	else
		log__hint("the targets may have been asleep: record again while they work");
	return -ENOMSG;
}
