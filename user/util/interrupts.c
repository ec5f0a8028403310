// SPDX-License-Identifier: MIT
#include "util/interrupts.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <time.h>

void interrupts__set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void interrupts__hold_requests(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void interrupts__hold(void)
{
	sigset_t set;

	interrupts__set(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void forget(int signal)
{
	const struct timespec at_once = {0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	sigtimedwait(&set, NULL, &at_once);
}

void interrupts__release(void)
{
	sigset_t set;

	forget(SIGINT);
	forget(SIGPIPE);
	interrupts__set(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int open_set(const sigset_t *set)
{
	int fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int interrupts__open(void)
{
	sigset_t set;

	interrupts__set(&set);
	return open_set(&set);
}

int interrupts__open_with_requests(void)
{
	sigset_t set;

	interrupts__set(&set);
	sigaddset(&set, SIGUSR1);
	return open_set(&set);
}

void interrupts__block(sigset_t *before)
{
	sigset_t told;

	interrupts__set(&told);
	pthread_sigmask(SIG_BLOCK, &told, before);
}

void interrupts__unblock(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}
