// SPDX-License-Identifier: MIT
#include "capture/perf/followed.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/code/uprobes_page.h"
#include "target/process.h"
#include "util/log.h"
#include "util/units.h"

int followed__add_process(struct followed *f, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct followed_process *process;

	if (fd < 0)
		return -errno;
	process = VEC_PUSH(&f->processes);
	if (!process) {
		close(fd);
		return -ENOMEM;
	}
	*process = (struct followed_process){.pid = pid, .fd = fd};
	return followed__watch(f, fd);
}

/* Of several, some may be gone already. */
static int watch_processes(struct followed *f)
{
	int err = 0;

	for (size_t i = 0; i < f->pids.n && !err; i++) {
		err = followed__add_process(f, f->pids.v[i]);
		if (err == -ESRCH)
			err = 0;
	}
	return err ? err : f->processes.n ? 0 : -ESRCH;
}

int followed__open(struct followed *f, const struct source_config *config)
{
	int err = 0;

	*f = (struct followed){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
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
	return err ? err : watch_processes(f);
}

void followed__close(struct followed *f)
{
	sideband__fini(&f->sideband);
	recording__fini(&f->pending);
	for (size_t i = 0; i < f->processes.n; i++)
		close(f->processes.v[i].fd);
	VEC_FINI(&f->processes);
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

/* An event of a thread that has ended hangs up, again each time that it is asked. */
void followed__forget_ended(struct followed *f)
{
	struct epoll_event events[16];
	int n = epoll_wait(f->epoll_fd, events, 16, 0);

	for (int i = 0; i < n; i++)
		if (events[i].events & (EPOLLHUP | EPOLLERR))
			epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, events[i].data.fd, NULL);
}

bool followed__is_alive(struct followed *f, const struct source_config *config)
{
	if (config->cgroup)
		return cgroup__populated(config->cgroup);
	for (size_t i = 0; i < f->processes.n;) {
		if (process__alive(f->processes.v[i].pid)) {
			i++;
			continue;
		}
		/* A dead pidfd stays readable and would wake epoll forever. */
		close(f->processes.v[i].fd);
		/* What it did last may wait in a CPU's ring: sideband__tidy() removes it. */
		if (!f->sideband.of_cpus)
			pid_set__remove(&f->pids, f->processes.v[i].pid);
		f->processes.v[i] = f->processes.v[--f->processes.n];
	}
	return f->processes.n;
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

	if (!config->n_probes && !config->return_probe)
		return 0;
	/* Once a process, at its main thread. */
	for (size_t i = 0; i < f->pending.threads.n && !err; i++)
		if (f->pending.threads.v[i].tid == f->pending.threads.v[i].pid)
			err = uprobes_page__add(rec, f->pending.threads.v[i].pid, time_ns, own, n,
						config->probed);
	return err;
}

void followed__count_left_out(const struct followed *f, const struct source_config *config,
			      struct recording *rec)
{
	char most[UNITS_TEXT_SIZE];
	uint64_t n = f->left_out.n + f->n_left_out;
	bool one = n == 1;

	rec->drops[DROP_THREADS] += n;
	rec->drops[DROP_RECORDS] += f->n_errors;
	if (n)
		log__warn("%" PRIu64
			  " thread%s that started later %s not recorded: -max-memory %s was full",
			  n, one ? "" : "s", one ? "is" : "are",
			  units__format_size(most, config->max_memory));
}
