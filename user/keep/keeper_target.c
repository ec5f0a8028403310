// SPDX-License-Identifier: MIT
#include "keep/keeper_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "target/process.h"
#include "util/log.h"

#define LOOK_INTERVAL_MS 500

/* Whether it was told to end. A snapshot of nothing there is none of. */
static bool told_to_end(struct keeper *k, int timeout_ms)
{
	struct pollfd fd = {.fd = k->signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;

	if (poll(&fd, 1, timeout_ms) <= 0 || read(k->signal_fd, &info, sizeof(info)) < 0)
		return false;
	if (info.ssi_signo != SIGUSR1)
		return true;
	log__info("no snapshot: the target is not there");
	return false;
}

/* A service manager removes a service's cgroup, and makes it anew: it is looked up each time. */
static int open_cgroup(struct keeper *k, bool quietly)
{
	enum log_level level = log__level();
	int err;

	cgroup__close(&k->cgroup);
	if (quietly)
		log__set_level(LOG_SILENT);
	err = cgroup__open(&k->cgroup, k->options->capture.cgroup);
	log__set_level(level);
	return err;
}

static int wait_for_cgroup(struct keeper *k)
{
	bool said = false;

	while (open_cgroup(k, true) || !cgroup__populated(&k->cgroup)) {
		if (!said)
			log__info("%s has no processes: waiting for them",
				  k->options->capture.cgroup);
		said = true;
		if (told_to_end(k, LOOK_INTERVAL_MS))
			return -EINTR;
	}
	k->start.cgroup = &k->cgroup;
	return 0;
}

int keeper__check_target(struct keeper *k)
{
	struct process process;
	int err = k->start.pid ? process__open(&process, k->start.pid) : 0;

	if (!err && k->start.pid)
		process__close(&process);
	return err;
}

int keeper__find_target(struct keeper *k)
{
	bool again = k->has_been_there;

	k->has_been_there = true;
	if (k->options->capture.cgroup)
		return wait_for_cgroup(k);
	if (!again)
		return 0;
	log__info("process %d has exited: nothing more to record", k->start.pid);
	return -EINTR;
}
