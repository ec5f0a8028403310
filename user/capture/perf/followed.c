// SPDX-License-Identifier: MIT
#include "capture/perf/followed.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/code/kernel_copy.h"
#include "capture/perf/event_place.h"
#include "capture/code/live_code.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/units.h"

/* Returns -ESRCH if the process has ended. */
static int add_process(struct followed *f, pid_t pid)
{
	int fd;

	for (size_t i = 0; i < f->processes.n; i++)
		if (f->processes.v[i].pid == pid)
			return 0;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	if (VEC_ADD(&f->processes, (struct followed_process){.pid = pid, .fd = fd})) {
		close(fd);
		return -ENOMEM;
	}
	return followed__watch(f, fd);
}

int followed__open(struct followed *f, const struct source_config *config,
		   const struct followed_ops *ops)
{
	int err = 0;

	*f = (struct followed){
		.config = config, .ops = ops, .epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
	recording__init(&f->pending);
	f->sideband = (struct sideband){.pids = config->cgroup ? NULL : &f->pids,
					.of_cpus = !config->cgroup && config->sample_by_cpu,
					.children = config->children,
					.rec = &f->pending};
	if (f->epoll_fd < 0)
		return -errno;
	if (config->cgroup)
		return 0;
	err = config->pids ? pid_set__add_all(&f->pids, config->pids)
			   : pid_set__add(&f->pids, config->pid);
	for (size_t i = 0; i < f->pids.n && !err; i++) {
		err = add_process(f, f->pids.v[i]);
		/* Some of several processes may have ended. */
		if (err == -ESRCH)
			err = 0;
	}
	return err ? err : f->processes.n ? 0 : -ESRCH;
}

static void close_ring(struct followed *f, struct followed_ring *ring)
{
	f->ops->close_ring(ring);
	free(ring);
}

void followed__close_rings(struct followed *f)
{
	for (size_t i = 0; i < f->rings.n; i++)
		close_ring(f, f->rings.v[i]);
	f->rings.n = f->tids.n = 0;
}

void followed__close(struct followed *f)
{
	followed__close_rings(f);
	sideband__fini(&f->sideband);
	recording__fini(&f->pending);
	VEC_FINI_EACH(&f->processes, e, close(e->fd));
	VEC_FINI(&f->rings);
	pid_set__fini(&f->pids);
	pid_set__fini(&f->tids);
	pid_set__fini(&f->left_out);
	if (f->epoll_fd >= 0)
		close(f->epoll_fd);
}

int followed__watch(struct followed *f, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* The event of a thread that has ended reports EPOLLHUP at every epoll_wait(). */
void followed__forget_ended(struct followed *f)
{
	struct epoll_event events[16];
	int n = epoll_wait(f->epoll_fd, events, 16, 0);

	for (int i = 0; i < n; i++)
		if (events[i].events & (EPOLLHUP | EPOLLERR))
			epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, events[i].data.fd, NULL);
}

/* True while a followed process, or one of the cgroup, is alive. Forgets those that have ended. */
static bool is_alive(struct followed *f)
{
	if (f->config->cgroup)
		return cgroup__populated(f->config->cgroup);
	for (size_t i = 0; i < f->processes.n;) {
		if (process__alive(f->processes.v[i].pid)) {
			i++;
			continue;
		}
		/* A dead pidfd stays readable and would wake epoll forever. */
		close(f->processes.v[i].fd);
		/*
		 * The last records of the process may still be in a CPU's ring: sideband__tidy()
		 * removes the pid later.
		 */
		if (!f->sideband.of_cpus)
			pid_set__remove(&f->pids, f->processes.v[i].pid);
		f->processes.v[i] = f->processes.v[--f->processes.n];
	}
	return f->processes.n;
}

int followed__fd(const struct source *source)
{
	return ((const struct followed *)source)->epoll_fd;
}

const struct pid_set *followed__pids(const struct source *source)
{
	const struct followed *f = (const struct followed *)source;

	return f->config->cgroup ? NULL : &f->pids;
}

enum source_state followed__state(struct source *source)
{
	struct followed *f = (struct followed *)source;
	int err;

	if (f->frozen)
		return SOURCE_FROZEN;
	err = f->ops->look(source);
	if (err && !f->n_errors++)
		log__warn("cannot keep the kernel's records of threads and mappings: %s",
			  strerror(-err));
	return is_alive(f) ? SOURCE_RUNNING : SOURCE_EXITED;
}

int followed__freeze(struct source *source)
{
	struct followed *f = (struct followed *)source;
	int err;

	if (f->frozen)
		return 0;
	for (size_t i = 0; i < f->rings.n; i++)
		f->ops->disable_ring(f->rings.v[i]);
	f->frozen = true;
	err = f->ops->look(source);
	return err ? source__refuse_read("the kernel's records of the process", err) : 0;
}

/* Adds the [uprobes] page of each known process, if config has probes. */
static int add_uprobes_pages(const struct followed *f, uint64_t time_ns, struct recording *rec)
{
	const struct source_config *config = f->config;
	uint8_t own[UPROBES_PAGE_SIZE];
	size_t n = config->return_probe ? uprobes_page__read(own, sizeof(own)) : 0;
	int err = 0;

	if (!config->n_probes && !config->return_probe)
		return 0;
	/* The main thread represents its process. */
	for (size_t i = 0; i < f->pending.threads.n && !err; i++)
		if (f->pending.threads.v[i].tid == f->pending.threads.v[i].pid)
			err = uprobes_page__add(rec, f->pending.threads.v[i].pid, time_ns, own, n,
						config->probed);
	return err;
}

static pid_t tid_of(const struct followed_ring *ring)
{
	return ring->now_tid ?: ring->place.pid;
}

static bool has_ring_of(const struct followed *f, pid_t tid)
{
	for (size_t i = 0; i < f->rings.n; i++)
		if (f->rings.v[i]->place.cpu >= 0 || f->rings.v[i]->place.pid == tid ||
		    f->rings.v[i]->now_tid == tid)
			return true;
	return false;
}

/* Threads that were left out for lack of memory are counted as threads, not here. */
static uint64_t count_unrecorded_hits(const struct followed *f, const struct recording *rec)
{
	uint64_t n = 0;

	for (size_t i = f->config->first_hit; i < rec->hits.n; i++) {
		pid_t tid = (pid_t)rec->hits.v[i].tid;

		n += !has_ring_of(f, tid) && !pid_set__has(&f->left_out, tid);
	}
	return n;
}

int followed__finish_read(const struct followed *f, int err, uint64_t time_ns,
			  bool with_kernel_code, struct recording *rec)
{
	const struct recording *pending = &f->pending;
	uint64_t n = f->left_out.n + f->n_left_out;

	/* Adds what the sideband has reported so far. */
	for (size_t i = 0; i < pending->threads.n && !err; i++)
		err = recording__add_thread(rec, &pending->threads.v[i]);
	for (size_t i = 0; i < pending->maps.n && !err; i++)
		err = recording__add_map(rec, &pending->maps.v[i]);
	for (size_t i = 0; i < pending->losses.n && !err; i++)
		err = recording__add_loss(rec, &pending->losses.v[i]);
	if (!err)
		err = add_uprobes_pages(f, time_ns, rec);
	rec->drops[DROP_THREADS] += n;
	rec->drops[DROP_HITS] += count_unrecorded_hits(f, rec);
	rec->drops[DROP_RECORDS] += f->n_errors;
	if (n)
		log__warn("%" PRIu64
			  " thread%s that started later %s not recorded: -max-memory %s was full",
			  n, n == 1 ? "" : "s", n == 1 ? "was" : "were",
			  BYTES(f->config->max_memory));
	if (err)
		source__refuse_read("the mappings and threads of the target", err);
	else if (f->config->kernel && !rec->kernel.kallsyms)
		err = kernel_copy__make("/proc", with_kernel_code, &rec->kernel);
	return err;
}

/* Finding the threads, at the start and later. */

struct followed_thread {
	pid_t pid, tid;
};
typedef VEC(struct followed_thread) thread_vec;

int followed__add_targets(struct followed *f)
{
	const struct source_config *config = f->config;
	struct pid_set targets = {0};
	int err = config->add_targets ? config->add_targets(config->targets_ctx, &targets) : 0;

	for (size_t i = 0; i < targets.n && !err; i++) {
		pid_t pid = targets.v[i];

		/* The kernel's set of targets also has zombies. */
		if (pid_set__has(&f->pids, pid) || !process__alive(pid))
			continue;
		err = add_process(f, pid);
		if (!err)
			err = pid_set__add(&f->pids, pid);
		if (err == -ESRCH)
			err = 0;
	}
	pid_set__fini(&targets);
	return err;
}

/* Lists the threads, or the main threads, of all processes that are alive. -ESRCH: none is. */
static int list_threads(const struct followed *f, thread_vec *vec)
{
	int err = 0;

	*vec = (thread_vec){0};
	for (size_t i = 0; i < f->pids.n && !err; i++) {
		_cleanup_free_ pid_t *tids = NULL;
		pid_t pid = f->pids.v[i];
		size_t n;

		err = process__threads(pid, &tids, &n);
		for (size_t k = 0; !err && k < n; k++)
			if (!f->main_only || tids[k] == pid)
				err = VEC_ADD(vec, (struct followed_thread){pid, tids[k]});
		if (err == -ESRCH)
			err = 0;
	}
	if (!err && !vec->n)
		err = -ESRCH;
	if (err)
		VEC_FINI(vec);
	return err;
}

int followed__count(const struct followed *f, size_t *n)
{
	thread_vec threads;
	int err = list_threads(f, &threads);

	*n = threads.n;
	VEC_FINI(&threads);
	return err;
}

bool followed__knows(const struct followed *f, pid_t pid)
{
	return VEC_FIND(&f->pending.threads, thread, thread->pid == pid);
}

int followed__note_process(struct followed *f, pid_t pid, uint64_t time_ns)
{
	_cleanup_free_ pid_t *tids = NULL;
	size_t n;
	int err = process__threads(pid, &tids, &n);

	for (size_t i = 0; !err && i < n; i++)
		err = process_note__thread(&f->pending, pid, tids[i], time_ns);
	if (!err)
		err = process_note__maps(&f->pending, pid, time_ns);
	return err == -ESRCH ? 0 : err;
}

int followed__note(struct followed *f, uint64_t time_ns)
{
	thread_vec threads;
	int err;

	if (f->config->cgroup) {
		_cleanup_free_ pid_t *pids = NULL;
		size_t n;

		err = cgroup__processes(f->config->cgroup, &pids, &n);
		for (size_t i = 0; !err && i < n; i++)
			err = followed__note_process(f, pids[i], time_ns);
		return err;
	}
	err = list_threads(f, &threads);
	for (size_t i = 0; i < threads.n && !err; i++)
		err = process_note__thread(&f->pending, threads.v[i].pid, threads.v[i].tid,
					   time_ns);
	VEC_FINI(&threads);
	/* Before its execve the child runs mtbpf's own program, which is not recorded. */
	for (size_t i = 0; i < f->pids.n && !err && !f->config->from_exec; i++) {
		err = process_note__maps(&f->pending, f->pids.v[i], time_ns);
		if (err == -ESRCH && f->pids.n > 1)
			err = 0;
	}
	return err;
}

/* One ring per followed thread, or per CPU. */

static int watch_ring(struct followed *f, const struct followed_ring *ring)
{
	int err = ring->wakes >= 0 ? followed__watch(f, ring->wakes) : 0;

	return err ? err : followed__watch(f, ring->sideband.event);
}

int followed__reopen(struct followed *f, const struct source_config *config)
{
	followed_ring_vec rings = f->rings;
	int err;

	f->rings = (followed_ring_vec){0};
	followed__close(f);
	err = followed__open(f, config, f->ops);
	f->rings = rings;
	for (size_t i = 0; i < rings.n && !err; i++)
		err = watch_ring(f, rings.v[i]);
	return err;
}

static int add_ring(struct followed *f, const struct event_place *place, pid_t pid)
{
	struct followed_ring *ring = calloc(1, f->ops->ring_size);
	int err = ring ? f->ops->open_ring((struct source *)f, ring, place) : -ENOMEM;

	if (!err) {
		err = VEC_ADD(&f->rings, ring);
		if (err)
			f->ops->close_ring(ring);
	}
	if (err) {
		free(ring);
		return err;
	}
	ring->pid = pid;
	return watch_ring(f, ring);
}

static int add_thread(struct followed *f, pid_t pid, pid_t tid)
{
	struct event_place place = event_place__of_thread(tid);
	int err = add_ring(f, &place, pid);

	if (err)
		return err;
	/* The thread is recorded from now on, so it does not count as left out. */
	pid_set__remove(&f->left_out, tid);
	return pid_set__add(&f->tids, tid);
}

int followed__add_threads(struct followed *f)
{
	thread_vec threads;
	int err = list_threads(f, &threads);

	for (size_t i = 0; i < threads.n && !err; i++) {
		err = add_thread(f, threads.v[i].pid, threads.v[i].tid);
		if (err == -ESRCH)
			err = 0;
	}
	VEC_FINI(&threads);
	f->may_have_missed = true;
	return err ? err : f->tids.n ? 0 : -ESRCH;
}

int followed__add_cpus(struct followed *f, const struct event_place *place, const cpu_set_t *cpus)
{
	int err = 0;

	for (int cpu = 0; cpu < CPU_SETSIZE && !err; cpu++) {
		struct event_place here = *place;

		if (!CPU_ISSET(cpu, cpus))
			continue;
		here.cpu = cpu;
		err = add_ring(f, &here, 0);
		if (err == -ENODEV)
			err = 0;
	}
	return err;
}

void followed__cpus(const struct followed *f, const struct cgroup *cgroup, cpu_set_t *cpus)
{
	thread_vec threads;
	cpu_set_t own;
	long n;

	if (cgroup && !cgroup__cpus(cgroup, cpus))
		return;
	CPU_ZERO(cpus);
	if (f->sideband.pids && !list_threads(f, &threads)) {
		for (size_t i = 0; i < threads.n; i++)
			if (!sched_getaffinity(threads.v[i].tid, sizeof(own), &own))
				CPU_OR(cpus, cpus, &own);
		VEC_FINI(&threads);
	}
	n = CPU_COUNT(cpus) ? 0 : sysconf(_SC_NPROCESSORS_CONF);
	for (int cpu = 0; cpu < n && cpu < CPU_SETSIZE; cpu++)
		CPU_SET(cpu, cpus);
}

bool followed__has_ring(const struct followed *f, pid_t pid)
{
	return VEC_FIND(&f->rings, ring, (*ring)->pid == pid);
}

static bool make_room(struct followed *f, pid_t tid)
{
	if (f->ops->fits((struct source *)f, f->rings.n + 1))
		return true;
	for (size_t i = 0; i < f->rings.n; i++) {
		struct followed_ring *ring = f->rings.v[i];

		if (!ring->ended ||
		    (f->ops->may_close && !f->ops->may_close((struct source *)f, ring)))
			continue;
		close_ring(f, ring);
		VEC_REMOVE(&f->rings, i);
		return true;
	}
	/* If the set cannot grow, the thread is missing from the count of those left out. */
	(void)pid_set__add(&f->left_out, tid);
	return false;
}

/*
 * Opens the ring of a thread that began after the start. Its first microseconds are not recorded.
 * Returns true if the thread has a new ring.
 */
static bool begin(struct followed *f, pid_t pid, pid_t tid)
{
	bool opened = false;
	uint64_t now_ns;
	int err = 0;

	if (pid_set__has(&f->tids, tid))
		return false;
	if (f->sideband.children && tid == pid)
		err = add_process(f, pid);
	/* Another process may get the number of one that has ended. */
	if (err == -ESRCH)
		pid_set__remove(&f->pids, pid);
	if (!err && (!f->main_only || tid == pid) && !f->frozen && make_room(f, tid)) {
		err = add_thread(f, pid, tid);
		opened = !err;
		if (!err)
			err = f->ops->enable_ring((struct source *)f, f->rings.v[f->rings.n - 1],
						  &now_ns);
		if (!err)
			err = process_note__thread(&f->pending, pid, tid, now_ns);
		/* A new process may have executed another program before its events were open. */
		if (!err && tid == pid)
			err = process_note__maps(&f->pending, pid, now_ns);
	}
	if (err && err != -ESRCH)
		log__warn("thread %d is not recorded: %s", tid, strerror(-err));
	return opened;
}

/*
 * A thread has called execve(2): if it was not the main thread, it has that one's tid now. A ring
 * of Intel PT that is not drained to disk has what the thread did before and after: its data keeps
 * the old tid. If it is drained, what the new program did before mtbpf reads this stays under the
 * old tid.
 */
static void on_exec(struct followed *f, const struct executed *executed)
{
	VEC_EACH(&f->rings, each) {
		struct followed_ring *ring = *each;
		uint64_t id;

		if (tid_of(ring) == executed->pid ||
		    ioctl(ring->sideband.event, PERF_EVENT_IOC_ID, &id) || id != executed->event_id)
			continue;
		pid_set__remove(&f->tids, tid_of(ring));
		(void)pid_set__add(&f->tids, executed->pid);
		ring->since_ns = executed->time_ns;
		ring->now_tid = executed->pid;
		if (!f->ops->may_close ||
		    (f->config->spool_dir && f->ops->may_close((struct source *)f, ring)))
			ring->place.pid = executed->pid;
		return;
	}
}

/* Begins all threads that lack a ring. *any: true if some threads have begun. */
static int begin_missed(struct followed *f, bool *any)
{
	thread_vec threads;
	int err = followed__add_targets(f);

	*any = false;
	if (!err)
		err = list_threads(f, &threads);
	if (err)
		return err == -ESRCH ? 0 : err;
	for (size_t i = 0; i < threads.n; i++)
		*any |= begin(f, threads.v[i].pid, threads.v[i].tid);
	VEC_FINI(&threads);
	return 0;
}

/* A target that starts threads all the time must not keep mtbpf here. */
#define ROUNDS_MAX 8

int followed__threads(struct followed *f)
{
	struct sideband *s = &f->sideband;
	int err = 0;

	VEC_EACH(&s->executed, executed)
		on_exec(f, executed);
	VEC_EACH(&s->ended, task) {
		/* Since an execve, another thread has the tid of the one that ended. */
		bool is_taken = false;

		VEC_EACH(&f->rings, each) {
			bool is_later = (*each)->since_ns > task->time_ns;

			if (tid_of(*each) != task->tid)
				continue;
			is_taken |= is_later;
			(*each)->ended |= !is_later;
		}
		if (is_taken)
			continue;
		pid_set__remove(&f->tids, task->tid);
		f->n_left_out += pid_set__has(&f->left_out, task->tid);
		pid_set__remove(&f->left_out, task->tid);
	}
	for (size_t i = 0; i < s->started.n; i++)
		begin(f, s->started.v[i].pid, s->started.v[i].tid);
	f->may_have_missed |= s->started.n != 0;
	s->started.n = s->ended.n = s->executed.n = 0;
	/*
	 * Threads and processes that started before the events of their parent were open are not
	 * reported. If a list has no new ones, the events of all possible parents were open before
	 * it was made, so that a thread that the list lacks is reported.
	 */
	for (int i = 0; i < ROUNDS_MAX && f->may_have_missed && !f->frozen && !err; i++)
		err = begin_missed(f, &f->may_have_missed);
	return err;
}

int followed__processes(struct followed *f)
{
	int err = 0;

	VEC_EACH_WHILE(&f->sideband.started, t, !err) {
		err = t->tid == t->pid ? add_process(f, t->pid) : 0;
		if (err == -ESRCH)
			err = 0;
	}
	f->sideband.started.n = f->sideband.ended.n = 0;
	return err;
}
