// SPDX-License-Identifier: MIT
#include "keep/keeper_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "target/process.h"
#include "session/target.h"
#include "util/clock.h"
#include "util/log.h"

#define SETTLE_LOOKS	   10
#define SETTLE_INTERVAL_MS 500

/* True if a signal tells mtbpf to end. For SIGUSR1 it says that the target is not running. */
static bool told_to_end(struct keeper *k)
{
	struct signalfd_siginfo info;

	if (read(k->signal_fd, &info, sizeof(info)) != sizeof(info))
		return false;
	if (info.ssi_signo != SIGUSR1)
		return true;
	log__info("no snapshot: the target is not running");
	return false;
}

/* The time of the next after__look(), if recordings are in the queue. */
static uint64_t next_look(const struct keeper *k)
{
	return k->after.n ? clock__now_ns() + SETTLE_INTERVAL_MS * 1000000ull : UINT64_MAX;
}

static int wait_for_target(struct keeper *k)
{
	const enum log_level level = log__level();
	int err = 0;

	do {
		/* The message that mtbpf waits is printed only once. */
		if (err == -ETIME && level > LOG_QUIET)
			log__set_level(LOG_QUIET);
		err = target__wait(&k->target, &k->options->capture.target, k->signal_fd,
				   next_look(k));
		log__set_level(level);
		if (after__look(&k->after, &k->metrics))
			keeper__count_recordings(k);
	} while (err == -ETIME || (err == -EINTR && !told_to_end(k)));
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

static bool opens(struct keeper *k)
{
	enum log_level level = log__level();
	struct session *s;

	log__set_level(LOG_SILENT);
	s = session__open(&k->options->capture, &k->start);
	session__close(s);
	log__set_level(level);
	return s;
}

/*
 * Waits until the new process has run execve and mapped its libraries. If that takes too long,
 * opening the session reports what is wrong.
 */
static int settle(struct keeper *k)
{
	struct pollfd fd = {.fd = k->signal_fd, .events = POLLIN};
	int err = 0;

	k->has_settled = false;
	for (int i = 0; !err && i < SETTLE_LOOKS; i++) {
		k->has_settled = opens(k);
		if (k->has_settled)
			return 0;
		if (poll(&fd, 1, SETTLE_INTERVAL_MS) > 0 && told_to_end(k))
			return -EINTR;
		err = wait_for_target(k);
	}
	return err;
}

int keeper__find_target(struct keeper *k)
{
	bool again = k->has_been_there;

	k->has_been_there = true;
	if (target_options__name(&k->options->capture.target)) {
		int err = wait_for_target(k);

		return err ? err : settle(k);
	}
	if (!again)
		return 0;
	if (k->target.pids.n == 1)
		log__info("process %d has exited: nothing more to record", k->target.pids.v[0]);
	else
		log__info("the processes have exited: nothing more to record");
	return -EINTR;
}
