// SPDX-License-Identifier: MIT
#include "apart.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/rights.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/vec.h"

void confine__reading(void)
{
	int err = capability__keep_for_files();

	if (err)
		log__debug("cannot give up capabilities: %s", strerror(-err));
}

void confine__decoding(const char *path, bool is_folder, const struct recording *const *recs,
		       size_t n)
{
	_cleanup_free_ char *place = path ? strdup(path) : NULL;
	VEC(int) roots = {0};
	int err = path && !place ? -ENOMEM : 0;

	for (size_t i = 0; i < n; i++)
		VEC_EACH_WHILE(&recs[i]->roots, root, !err)
			if (root->is_owner)
				err = VEC_ADD(&roots, root->fd);
	if (!err)
		err = landlock__confine(place ? dirname(place) : NULL, is_folder, roots.v, roots.n);
	if (!err)
		err = capability__keep_for_our_files();
	if (err)
		log__debug("decoding is not confined: %s", strerror(-err));
	VEC_FINI(&roots);
}

struct answer {
	int result;
	bool has_error; /* the child has printed an error */
};

static void work_and_exit(int (*work)(void *context), void *context, int to)
{
	struct answer answer = {0};

	confine__reading();
	answer.result = work(context);
	answer.has_error = log__has_error();
	fflush(NULL);
	_exit(write(to, &answer, sizeof(answer)) != sizeof(answer));
}

/*
 * Waits until the child has answered or closed its end of the pipe. Passes signals on to the child.
 */
static bool wait_for_answer(int from, int signal_fd, pid_t pid, struct answer *answer)
{
	struct pollfd fds[] = {{.fd = from, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
	struct signalfd_siginfo info;

	while (!fds[0].revents) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return false;
		if (fds[1].revents & POLLIN && read(signal_fd, &info, sizeof(info)) == sizeof(info))
			kill(pid, (int)info.ssi_signo);
	}
	return read(from, answer, sizeof(*answer)) == sizeof(*answer);
}

/* Explains why the child ended; a library may have ended it when memory ran out, for example. */
static int explain_end(int status, const char *what, const char *hint)
{
	int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGPIPE) {
		interrupts__release();
		raise(signal);
	}
	if (signal)
		log__error("%s was ended by a signal: %s", what, strsignal(signal));
	else
		log__error("%s ended early, with status %d", what, WEXITSTATUS(status));
	log__hint("%s", hint);
	return -EIO;
}

static int refuse_start(int err, const char *what, const char *hint)
{
	log__error("cannot start a process for %s: %s", what, strerror(err));
	log__hint("%s", hint);
	return -err;
}

int apart__run(int (*work)(void *context), void *context, const char *what, const char *hint)
{
	_cleanup_close_ int from = -1, to = -1, signal_fd = interrupts__open();
	struct answer answer;
	bool has_answer;
	int ends[2], status;
	pid_t pid;

	if (signal_fd < 0)
		return refuse_start(-signal_fd, what, hint);
	if (pipe2(ends, O_CLOEXEC))
		return refuse_start(errno, what, hint);
	from = ends[0];
	to = ends[1];
	pid = child_process__fork();
	if (pid < 0)
		return refuse_start(errno, what, hint);
	if (!pid)
		work_and_exit(work, context, to);
	close(to);
	to = -1;
	has_answer = wait_for_answer(from, signal_fd, pid, &answer);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!has_answer)
		return explain_end(status, what, hint);
	if (answer.has_error)
		log__note_error();
	return answer.result;
}
