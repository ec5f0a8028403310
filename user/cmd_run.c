// SPDX-License-Identifier: MIT
/* run: a program of which not one instruction is missed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture_command.h"
#include "cmd.h"
#include "cmd_table.h"
#include "util/interrupts.h"
#include "util/log.h"

/* clang-format off */
static const struct option_spec specs[] = {
	OPTION_CHILDREN("what the program forks as well"),
	OPTION_SYMBOL,
	OPTIONS_REGION,
	OPTION_DELAY,
	OPTION_DURATION,
	OPTIONS_CPU,
	OPTION_IF,
	OPTION_STALL,
	OPTIONS_LIMITS,
	OPTION_FULL,
	OPTION_OUTPUT(OUTPUT_HELP),
	OPTIONS_CAPTURE,
	OPTIONS_SAMPLE,
	OPTION_STRICT,
	OPTIONS_LOG,
	OPTION_NO_INLINE,
	OPTION_VIEW,
};
/* clang-format on */

const struct option_table run_table = {
	.command = "run",
	.examples =
		(const char *const[]){
			"mtbpf run -symbol one_iter -delay-thresh 10ms -- ./service --port 8080",
			"mtbpf run -- ./short-lived", "mtbpf run -full-execution -- ./batch-job",
			NULL},
	.usage = "run [-symbol NAME] [-delay-thresh D | -duration-thresh D] [options] -- CMD ARGS",
	.summary = "Starts a program and traces it from its first instruction on.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* As execvp(3) would find it. */
static int find_program(const char *name, char path[static PATH_MAX])
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

/* What the child tells of itself: end of file is what execve(2) leaves of the pipe. */
enum { NOT_STARTED = 'n' };

/* The child waits for mtbpf to be ready; end of file means it has given up. */
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

/* Until it ends; what kill(1) sends to us meanwhile is meant for it. */
static int wait_for_child(pid_t pid)
{
	siginfo_t info;
	int status = 0;
	sigset_t set;

	if (waitpid(pid, &status, WNOHANG) == pid)
		return status;
	log__info("the program runs on as process %d; mtbpf waits for its end", pid);
	interrupts__set(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		/* From a terminal the program has had it by itself. */
		if (sigwaitinfo(&set, &info) > 0 && info.si_signo != SIGCHLD &&
		    info.si_code == SI_USER)
			kill(pid, info.si_signo);
	}
	return status;
}

/* The program lives on after the snapshot, as it does after attach; its end is ours. */
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
	log__error("cannot start %s: %s", path, strerror(errno));
	return EXIT_FAILED;
}

/* go[] starts the child, status[] says whether it has become the program. */
static int run_child(const struct capture_options *options, const char *path, char **argv,
		     const int go[2], const int status[2])
{
	struct session_start start = {.exec_path = path, .go_fd = go[1]};
	int code;

	fflush(NULL);
	start.pid = fork();
	if (start.pid < 0)
		return refuse_start(path);
	if (!start.pid) {
		close(go[1]);
		wait_and_exec(go[0], status[1], path, argv);
	}
	close(go[0]);
	close(status[1]);
	code = capture_command__run(options, &start, true);
	close(go[1]);
	if (has_started(status[0]))
		say_status(wait_for_child(start.pid));
	else
		waitpid(start.pid, NULL, 0);
	close(status[0]);
	return code;
}

static int run_program(const struct capture_options *options, const char *path, char **argv)
{
	int go[2], status[2];

	if (pipe2(go, O_CLOEXEC) || pipe2(status, O_CLOEXEC))
		return refuse_start(path);
	return run_child(options, path, argv, go, status);
}

int cmd_run(int argc, char **argv)
{
	struct capture_options options = CAPTURE_DEFAULTS;
	char path[PATH_MAX];
	int rest, err;

	err = options__parse(&run_table, &options, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (capture_options__check(&options, run_table.command))
		return EXIT_USAGE;
	if (rest >= argc) {
		log__error("run: which program?");
		log__hint("usage: mtbpf %s", run_table.usage);
		return EXIT_USAGE;
	}
	if (find_program(argv[rest], path)) {
		log__error("no program '%s'", argv[rest]);
		log__hint("give its path, or one of a program in $PATH");
		return EXIT_USAGE;
	}
	return run_program(&options, path, argv + rest);
}
