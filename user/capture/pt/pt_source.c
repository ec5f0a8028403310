// SPDX-License-Identifier: MIT
/* The pt source: Intel PT through perf, a ring a thread. */
#include "capture/pt/pt_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/kernel_access.h"
#include "capture/pt/explain.h"
#include "capture/pt/memlock.h"
#include "capture/pt/pt_probe.h"
#include "target/process.h"
#include "util/log.h"
#include "util/units.h"

#define AUX_MIN (4u << 10)
#define AUX_MAX (1u << 30)

static int pt__probe(void)
{
	struct pt_pmu pmu;
	int err;

	if (pt_pmu__read(&pmu)) {
		pt_explain__no_pmu();
		return -ENODEV;
	}
	err = pt_probe__open(&pmu, false);
	if (err)
		pt_explain__open(err, 0);
	return err;
}

static size_t aux_size(uint64_t wanted)
{
	size_t size = AUX_MIN;

	while (size < wanted && size < AUX_MAX)
		size <<= 1;
	return size;
}

static int watch_fd(struct source *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int add_thread(struct source *s, pid_t tid)
{
	struct pt_thread *t = VEC_PUSH(&s->threads);
	int err = t ? pt_thread__open(t, tid, &s->thread_config) : -ENOMEM;

	if (t && err)
		s->threads.n--;
	return err ? err : watch_fd(s, t->sideband);
}

/* Every thread there is; one that ends meanwhile is no error. */
static int add_threads(struct source *s)
{
	pid_t *tids;
	size_t n;
	int err = process__threads(s->config.pid, &tids, &n);

	if (err)
		return err;
	if (!s->config.multi_thread)
		n = n ? 1 : 0;
	for (size_t i = 0; i < n && !err; i++) {
		err = add_thread(s, tids[i]);
		if (err == -ESRCH)
			err = 0;
	}
	free(tids);
	return err ? err : s->threads.n ? 0 : -ESRCH;
}

static void close_threads(struct source *s)
{
	for (size_t i = 0; i < s->threads.n; i++)
		pt_thread__close(&s->threads.v[i]);
	s->threads.n = 0;
}

static bool is_unsupported(int err)
{
	return err == -EINVAL || err == -EOPNOTSUPP;
}

/* Chosen by trying, best first: version numbers say little (6.12.117 has AUX pause too). */
static int open_threads(struct source *s)
{
	int err = -EINVAL;

	for (enum pt_freeze freeze = PT_FREEZE_PAUSE;
	     is_unsupported(err) && freeze <= PT_FREEZE_DISABLE; freeze++) {
		if (s->config.freeze_method && (int)freeze != s->config.freeze_method - 1)
			continue;
		if (s->config.immediate_stop && freeze == PT_FREEZE_DISABLE)
			break;
		close_threads(s);
		s->thread_config.freeze = freeze;
		err = add_threads(s);
	}
	if (is_unsupported(err) && s->config.immediate_stop) {
		log__error("-immediate-stop: this kernel cannot freeze Intel PT at a probe");
		log__hint(
			"without it the trace is frozen from user space, some 50 us after the hit");
	} else if (err) {
		pt_explain__open(err, s->thread_config.aux_size);
	}
	return err;
}

/* Said before anything is opened: the kernel itself only says EPERM. */
static int check_memlock(const struct source *s)
{
	size_t aux = s->thread_config.aux_size, n;
	struct memlock_limits limits;
	pid_t *tids;
	int err = process__threads(s->config.pid, &tids, &n);

	if (err) {
		pt_explain__open(err, aux);
		return err;
	}
	free(tids);
	memlock__read(&limits);
	return memlock__check(&limits, s->config.multi_thread ? n : 1, pt_thread__locked_size(aux),
			      aux);
}

static int open_tracefs(struct source *s)
{
	int err;

	if (!s->config.probe || !s->config.multi_thread)
		return 0;
	err = tracefs_probe__create(&s->tracefs, s->config.probe);
	if (!err)
		s->thread_config.tracepoint = tracefs_probe__id(s->tracefs);
	return err;
}

/* What would make a trace of the kernel useless, or impossible, is known before the target is
 * touched. */
static int check_kernel(const struct source *s)
{
	const struct kernel_refusal *refusal = kernel_access__try();
	int err;

	if (refusal) {
		log__error("cannot trace the kernel: %s", refusal->what);
		log__hint("%s; or leave -trace-include-kernel out", refusal->remedy);
		return refusal->err;
	}
	err = pt_probe__open(&s->pmu, true);
	if (err)
		pt_explain__open_kernel(err);
	return err == -EOPNOTSUPP ? -ENODEV : err;
}

static int open_all(struct source *s)
{
	int err;

	if (pt_pmu__read(&s->pmu)) {
		pt_explain__no_pmu();
		return -ENODEV;
	}
	err = s->config.kernel ? check_kernel(s) : 0;
	if (err)
		return err;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->pid_fd = (int)syscall(SYS_pidfd_open, s->config.pid, 0);
	s->thread_config = (struct pt_thread_config){
		.pmu_type = s->pmu.type,
		.aux_size = aux_size(s->config.snapshot_size),
		.probe = s->config.probe,
		.kernel = s->config.kernel,
		.from_exec = s->config.from_exec,
	};
	if (s->epoll_fd < 0 || s->pid_fd < 0)
		return -errno;
	err = pt_timing__config(&s->config.timing, &s->pmu, &s->thread_config.pt_config);
	if (!err)
		err = watch_fd(s, s->pid_fd);
	if (!err)
		err = check_memlock(s);
	if (!err)
		err = open_tracefs(s);
	return err ? err : open_threads(s);
}

static void pt__close(struct source *s);

static struct source *pt__open(const struct source_config *config)
{
	struct source *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return NULL;
	s->config = *config;
	s->epoll_fd = s->pid_fd = -1;
	recording__init(&s->pending);
	s->sideband = (struct sideband){.pid = config->pid, .rec = &s->pending};
	err = open_all(s);
	if (!err)
		return s;
	pt__close(s);
	errno = -err;
	return NULL;
}

/* A thread's event of its own takes the gate for all: with tracefs they share one call. */
static int pt__probe_event(const struct source *s)
{
	return s->threads.n ? s->threads.v[0].probe : -1;
}

static int pt__start(struct source *s)
{
	int err = perf_clock__now(&s->first);

	if (!err)
		err = pt_source__note_initial(s);
	for (size_t i = 0; i < s->threads.n && !err; i++)
		err = pt_thread__enable(&s->threads.v[i], &s->thread_config);
	if (err)
		pt_explain__open(err, s->thread_config.aux_size);
	else
		log__debug("pt: config %#llx, frozen %s",
			   (unsigned long long)s->thread_config.pt_config,
			   pt_freeze__name(s->thread_config.freeze));
	return err;
}

static int pt__fd(const struct source *s)
{
	return s->epoll_fd;
}

static struct pt_thread *find_thread(struct source *s, pid_t tid)
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i].tid == tid)
			return &s->threads.v[i];
	return NULL;
}

/* A thread that began after the start: some microseconds of it are missing. */
static void follow(struct source *s, pid_t tid)
{
	struct rec_thread thread = {.pid = s->config.pid, .tid = tid};
	struct clock_point now;
	int err;

	if (!s->config.multi_thread || s->frozen || find_thread(s, tid))
		return;
	err = add_thread(s, tid);
	if (!err)
		err = pt_thread__enable(&s->threads.v[s->threads.n - 1], &s->thread_config);
	if (err) {
		if (err != -ESRCH)
			log__warn("thread %d is not recorded: %s", tid, strerror(-err));
		return;
	}
	process__thread_name(s->config.pid, tid, thread.comm);
	thread.start_ns = perf_clock__now(&now) ? 0 : now.perf_ns;
	recording__add_thread(&s->pending, &thread);
}

static void drain(struct source *s)
{
	for (size_t i = 0; i < s->threads.n; i++) {
		sideband__drain(&s->sideband, &s->threads.v[i].sideband_ring);
		sideband__drain(&s->sideband, &s->threads.v[i].ring);
	}
	for (size_t i = 0; i < s->sideband.started.n; i++)
		follow(s, s->sideband.started.v[i]);
	for (size_t i = 0; i < s->sideband.ended.n; i++) {
		struct pt_thread *t = find_thread(s, s->sideband.ended.v[i]);

		if (t)
			t->ended = true;
	}
	s->sideband.started.n = s->sideband.ended.n = 0;
}

static enum source_state pt__state(struct source *s)
{
	if (s->frozen)
		return SOURCE_FROZEN;
	drain(s);
	return process__alive(s->config.pid) ? SOURCE_RUNNING : SOURCE_EXITED;
}

static int pt__freeze(struct source *s)
{
	if (s->frozen)
		return 0;
	for (size_t i = 0; i < s->threads.n; i++)
		pt_thread__disable(&s->threads.v[i]);
	s->frozen = true;
	drain(s);
	return 0;
}

static const char *pt__freeze_name(const struct source *s)
{
	return pt_freeze__name(s->thread_config.freeze);
}

static void pt__close(struct source *s)
{
	if (!s)
		return;
	close_threads(s);
	VEC_FINI(&s->threads);
	tracefs_probe__remove(s->tracefs);
	sideband__fini(&s->sideband);
	recording__fini(&s->pending);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->pid_fd >= 0)
		close(s->pid_fd);
	free(s);
}

const struct source_ops source_pt = {
	.name = "pt",
	.about = "Intel Processor Trace: the target runs at full speed",
	.probe = pt__probe,
	.open = pt__open,
	.probe_event = pt__probe_event,
	.start = pt__start,
	.fd = pt__fd,
	.state = pt__state,
	.freeze = pt__freeze,
	.read = pt_source__read,
	.freeze_name = pt__freeze_name,
	.close = pt__close,
};
