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

/* A service manager removes a service's cgroup, and makes it anew: all is looked up each time. */
static int choose(struct keeper *k, bool quietly)
{
	enum log_level level = log__level();
	int err;

	target__close(&k->target);
	if (quietly)
		log__set_level(LOG_SILENT);
	err = target__choose(&k->target, &k->options->capture.target);
	log__set_level(level);
	return err ? err : target__is_alive(&k->target) ? 0 : -ESRCH;
}

static int wait_for_target(struct keeper *k)
{
	const char *name = target_options__name(&k->options->capture.target);
	bool said = false;
	int err;

	while ((err = choose(k, true)) && err != -ENOTUNIQ && err != -ENOMEM) {
		if (!said)
			log__info("%s has no processes: waiting for them", name);
		said = true;
		if (told_to_end(k, LOOK_INTERVAL_MS))
			return -EINTR;
	}
	/* Once more, for what there is to say of it. */
	return choose(k, false);
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
	if (target_options__name(&k->options->capture.target))
		return wait_for_target(k);
	if (!again)
		return target__choose(&k->target, &k->options->capture.target);
	if (k->target.pids.n == 1)
		log__info("process %d has exited: nothing more to record", k->target.pids.v[0]);
	else
		log__info("the processes have exited: nothing more to record");
	return -EINTR;
}
