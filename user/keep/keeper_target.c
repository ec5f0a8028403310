// SPDX-License-Identifier: MIT
#include "keep/keeper_internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "target/process.h"
#include "session/target_wait.h"
#include "util/log.h"

/* A snapshot of nothing there is none of. */
static bool told_to_end(struct keeper *k)
{
	struct signalfd_siginfo info;

	if (read(k->signal_fd, &info, sizeof(info)) != sizeof(info))
		return false;
	if (info.ssi_signo != SIGUSR1)
		return true;
	log__info("no snapshot: the target is not there");
	return false;
}

static int wait_for_target(struct keeper *k)
{
	int err;

	do {
		err = target__wait(&k->target, &k->options->capture.target, k->signal_fd,
				   UINT64_MAX);
	} while (err == -EINTR && !told_to_end(k));
	return err;
}

int keeper__check_target(struct keeper *k)
{
	const struct target_options *options = &k->options->capture.target;
	struct process process;
	int err;

	if (target_options__name(options))
		return 0;
	err = target__choose(&k->target, options);
	if (err || k->target.pids.n > 1)
		return err;
	err = process__open(&process, k->target.pids.v[0]);
	if (!err)
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
		return 0;
	if (k->target.pids.n == 1)
		log__info("process %d has exited: nothing more to record", k->target.pids.v[0]);
	else
		log__info("the processes have exited: nothing more to record");
	return -EINTR;
}
