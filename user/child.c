// SPDX-License-Identifier: MIT
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/signals.h"
#include "util/log.h"

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static int look_for(const char *name, char path[static PATH_MAX])
{
	const char *dirs = getenv("PATH");
	char found[PATH_MAX];

	if (strchr(name, '/')) {
		snprintf(found, sizeof(found), "%s", name);
		return is_program(found) && realpath(found, path) ? 0 : -ENOENT;
	}
	while (dirs && *dirs) {
		int n = (int)strcspn(dirs, ":");

		snprintf(found, sizeof(found), "%.*s/%s", n ? n : 1, n ? dirs : ".", name);
		if (is_program(found) && realpath(found, path))
			return 0;
		dirs += n + (dirs[n] == ':');
	}
	return -ENOENT;
}

int child__find_program(const char *name, char path[static PATH_MAX])
{
	int err = look_for(name, path);

	if (err) {
		log__error("no program '%s'", name);
		log__hint("give its path, or the name of a program in $PATH");
	}
	return err;
}

/* The child's message if execve(2) failed; execve(2) closes the pipe, which reads as end of file.
 */
enum { NOT_STARTED = 'n' };

/* The child waits until mtbpf is ready; end of file means that mtbpf has given up. */
static void wait_and_exec(int go_fd, int status_fd, const char *path, char **argv)
{
	const char not_started = NOT_STARTED;
	sigset_t set;
	char byte;

	if (read(go_fd, &byte, 1) == 1) {
		interrupts__set(&set);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		execv(path, argv);
		log__error("cannot run %s: %s", path, strerror(errno));
		log__hint("'file %s' says what it is", path);
	}
	_exit(write(status_fd, &not_started, 1) == 1 ? 127 : 126);
}

static bool has_started(int status_fd)
{
	char byte;

	return read(status_fd, &byte, 1) == 0;
}

/* Waits for the child's end; passes on signals that kill(1) sends to mtbpf. */
static int wait_for_child(pid_t pid)
{
	siginfo_t info;
	int status = 0;
	sigset_t set;

	if (waitpid(pid, &status, WNOHANG) == pid)
		return status;
	log__info("the program runs on as process %d; mtbpf waits until it exits", pid);
	interrupts__set(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		/* A terminal has sent the signal to the program, too. */
		if (sigwaitinfo(&set, &info) > 0 && info.si_signo != SIGCHLD &&
		    info.si_code == SI_USER)
			kill(pid, info.si_signo);
	}
	return status;
}

/* The program runs on after the snapshot, as with attach; mtbpf ends when it ends. */
static void say_status(int status)
{
	if (WIFSIGNALED(status))
		log__info("the program was ended by signal %d (%s)", WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		log__info("the program exited with %d", WEXITSTATUS(status));
}

static int refuse_start(const char *path)
{
	int err = -errno;

	log__error("cannot start %s: %s", path, strerror(-err));
	log__hint("raise the limits of processes and open files (ulimit -u, ulimit -n)");
	return err;
}

static void close_both(const int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

int child__fork(struct child *child, const char *path, char **argv)
{
	int go[2], status[2], err;

	if (pipe2(go, O_CLOEXEC))
		return refuse_start(path);
	if (pipe2(status, O_CLOEXEC)) {
		err = refuse_start(path);
		close_both(go);
		return err;
	}
	fflush(NULL);
	child->pid = fork();
	if (child->pid < 0) {
		err = refuse_start(path);
		close_both(go);
		close_both(status);
		return err;
	}
	if (!child->pid) {
		close(go[1]);
		wait_and_exec(go[0], status[1], path, argv);
	}
	close(go[0]);
	close(status[1]);
	child->go_fd = go[1];
	child->status_fd = status[0];
	return 0;
}

int child__wait(struct child *child)
{
	bool is_started;

	close(child->go_fd);
	is_started = has_started(child->status_fd);
	if (is_started)
		say_status(wait_for_child(child->pid));
	else
		waitpid(child->pid, NULL, 0);
	close(child->status_fd);
	return is_started ? 0 : -ENOEXEC;
}
