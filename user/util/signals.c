// SPDX-License-Identifier: MIT
#include "util/signals.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "util/fs.h"
#include "util/log.h"
#include "util/page.h"

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

#define ERASE "\r\033[K"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* The data of handlers is static, because they take no context. Only the handler reads stop_text.
 */
static char stop_text[STOP_TEXT_SIZE];
static size_t stop_text_len;
static char partial[PATH_MAX];
static atomic_bool has_partial;
static struct sigaction actions_before[N_SIGNALS];
static bool has_begun;

/* Ends with the signal's default action, so that the parent sees the signal. */
static void stop(int signal)
{
	ssize_t n = 0;

	if (atomic_load(&has_partial) && unlink(partial) && errno == EISDIR)
		fs__remove_dir(partial);
	if (stop_text_len)
		n = write(STDERR_FILENO, stop_text, stop_text_len);
	(void)n;
	raise(signal);
}

void stop__begin(const char *said)
{
	int n = 0;

	if (log__level() > LOG_QUIET)
		n = snprintf(stop_text, sizeof(stop_text), "%s%s", log__has_line() ? ERASE : "",
			     said);
	stop_text_len = (size_t)n < sizeof(stop_text) ? (size_t)n : sizeof(stop_text) - 1;
	for (size_t i = 0; i < N_SIGNALS; i++) {
		/* The signal that stop() raises waits until stop() returns, and then does what it
		 * does by default. */
		struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};

		if (signals[i] == SIGPIPE)
			action.sa_handler = SIG_IGN;
		for (size_t k = 0; k < N_SIGNALS; k++)
			sigaddset(&action.sa_mask, signals[k]);
		sigaction(signals[i], NULL, &actions_before[i]);
		if (actions_before[i].sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
	has_begun = true;
}

void stop__end(void)
{
	for (size_t i = 0; i < N_SIGNALS && has_begun; i++)
		sigaction(signals[i], &actions_before[i], NULL);
	has_begun = false;
}

void stop__set_partial(const char *path)
{
	atomic_store(&has_partial, false);
	if (!path || strlen(path) >= sizeof(partial))
		return;
	strcpy(partial, path);
	atomic_store(&has_partial, true);
}

pid_t child_process__fork(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	return 0;
}

static _Atomic uintptr_t first; /* 0: none */

/*
 * Maps a page of zeroes in place of the missing page of a file. mmap() is a plain system call; only
 * errno has to be saved.
 */
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr, none = 0;
	int saved = errno;
	void *page = MAP_FAILED;

	if (info->si_code == BUS_ADRERR && at)
		page = mmap((void *)(at & -PAGE), PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (page == MAP_FAILED)
		sigaction(SIGBUS, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	else
		atomic_compare_exchange_strong(&first, &none, at);
	errno = saved;
}

void cut_files__survive(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &action, NULL);
}

bool cut_files__any(void)
{
	return atomic_load(&first);
}

bool cut_files__first_in(const void *start, size_t size)
{
	uintptr_t at = atomic_load(&first);

	return at && at - (uintptr_t)start < size;
}
