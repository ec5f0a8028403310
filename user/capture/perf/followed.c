// SPDX-License-Identifier: MIT
#include "capture/perf/followed.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/code/uprobes_page.h"
#include "util/log.h"
#include "util/units.h"

int followed__open(struct followed *f, const struct source_config *config)
{
	*f = (struct followed){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .pid_fd = -1};
	recording__init(&f->pending);
	f->sideband =
		(struct sideband){.pid = config->cgroup ? 0 : config->pid, .rec = &f->pending};
	if (f->epoll_fd < 0)
		return -errno;
	if (config->cgroup)
		return 0;
	f->pid_fd = (int)syscall(SYS_pidfd_open, config->pid, 0);
	return f->pid_fd < 0 ? -errno : followed__watch(f, f->pid_fd);
}

void followed__close(struct followed *f)
{
	sideband__fini(&f->sideband);
	recording__fini(&f->pending);
	if (f->epoll_fd >= 0)
		close(f->epoll_fd);
	if (f->pid_fd >= 0)
		close(f->pid_fd);
}

int followed__watch(struct followed *f, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void followed__threads(struct followed *f, struct source *source, const struct followed_ops *ops)
{
	for (size_t i = 0; i < f->sideband.ended.n; i++)
		ops->ended(source, f->sideband.ended.v[i]);
	for (size_t i = 0; i < f->sideband.started.n; i++) {
		pid_t tid = f->sideband.started.v[i];
		int err = ops->began(source, tid);

		if (err && err != -ESRCH)
			log__warn("thread %d is not recorded: %s", tid, strerror(-err));
	}
	f->sideband.started.n = f->sideband.ended.n = 0;
}

int followed__add_to(const struct followed *f, struct recording *rec)
{
	const struct recording *pending = &f->pending;
	int err = 0;

	for (size_t i = 0; i < pending->threads.n && !err; i++)
		err = recording__add_thread(rec, &pending->threads.v[i]);
	for (size_t i = 0; i < pending->maps.n && !err; i++)
		err = recording__add_map(rec, &pending->maps.v[i]);
	for (size_t i = 0; i < pending->losses.n && !err; i++)
		err = recording__add_loss(rec, &pending->losses.v[i]);
	return err;
}

int followed__add_uprobes_pages(const struct followed *f, const struct source_config *config,
				uint64_t time_ns, struct recording *rec)
{
	uint8_t own[UPROBES_PAGE_SIZE];
	size_t n = config->return_probe ? uprobes_page__read(own, sizeof(own)) : 0;
	int err = 0;

	if (!config->n_probes)
		return 0;
	if (!config->cgroup)
		return uprobes_page__add(rec, config->pid, time_ns, own, n, config->probed);
	/* Once a process, at its main thread. */
	for (size_t i = 0; i < f->pending.threads.n && !err; i++)
		if (f->pending.threads.v[i].tid == f->pending.threads.v[i].pid)
			err = uprobes_page__add(rec, f->pending.threads.v[i].pid, time_ns, own, n,
						config->probed);
	return err;
}

void followed__warn_left_out(const struct followed *f, const struct source_config *config)
{
	char most[UNITS_TEXT_SIZE];
	bool one = f->left_out == 1;

	if (f->left_out)
		log__warn(
			"%zu thread%s that started later %s not recorded: -max-memory %s was full",
			f->left_out, one ? "" : "s", one ? "is" : "are",
			units__format_size(most, config->max_memory));
}
