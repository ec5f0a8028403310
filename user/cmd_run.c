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
#include "util/log.h"

static const struct option_spec specs[] = {
	OPTION_SYMBOL,
	OPTION_DELAY,
	OPTION_DURATION,
	{"output", NULL, 'o', OPT_STRING, "FILE",
	 "NAME.fxt, .fxt.gz or .fxt.zst; the recording is NAME.mtbpf beside it (trace.fxt)",
	 OPTION(output), NULL},
	OPTIONS_CAPTURE,
	OPTIONS_LOG,
};

static const struct option_table table = {
	.command = "run",
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

/* The child waits for mtbpf to be ready; end of file means it has given up. */
static void wait_and_exec(int go_fd, const char *path, char **argv)
{
	sigset_t none;
	char byte;

	if (read(go_fd, &byte, 1) != 1)
		_exit(127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(path, argv);
	log__error("cannot run %s: %s", path, strerror(errno));
	_exit(127);
}

/* The program lives on after the snapshot, as it does after attach; its end is ours. */
static int wait_for_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	if (WIFSIGNALED(status))
		log__info("the program was ended by signal %d (%s)", WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		log__info("the program exited with %d", WEXITSTATUS(status));
	return EXIT_OK;
}

static int run_program(const struct capture_options *options, const char *path, char **argv)
{
	struct session_start start = {.exec_path = path};
	int go[2], code;

	if (pipe2(go, O_CLOEXEC)) {
		log__error("cannot start %s: %s", path, strerror(errno));
		return EXIT_FAILED;
	}
	fflush(NULL);
	start.pid = fork();
	if (start.pid < 0) {
		log__error("cannot start %s: %s", path, strerror(errno));
		return EXIT_FAILED;
	}
	if (!start.pid) {
		close(go[1]);
		wait_and_exec(go[0], path, argv);
	}
	close(go[0]);
	start.go_fd = go[1];
	code = capture_command__run(options, &start, true);
	close(go[1]);
	wait_for_child(start.pid);
	return code;
}

int cmd_run(int argc, char **argv)
{
	struct capture_options options = CAPTURE_DEFAULTS;
	char path[PATH_MAX];
	int rest, err;

	err = options__parse(&table, &options, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (capture_options__check(&options, table.command))
		return EXIT_USAGE;
	if (rest >= argc) {
		log__error("run: which program?");
		log__hint("usage: mtbpf %s", table.usage);
		return EXIT_USAGE;
	}
	if (find_program(argv[rest], path)) {
		log__error("no program '%s'", argv[rest]);
		log__hint("give its path, or one of a program in $PATH");
		return EXIT_USAGE;
	}
	return run_program(&options, path, argv + rest);
}
