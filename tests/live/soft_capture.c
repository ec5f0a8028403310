// SPDX-License-Identifier: MIT
#include "soft_capture.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/fs.h"

#define MAX_WORDS 32

static const char *build_folder(void)
{
	const char *folder = getenv("O");

	return folder ? folder : "build";
}

static pid_t spawn(const char *const *words, const char *output)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* A test that fails ends here and there: nothing it started outlives it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (output) {
		int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		dup2(fd, 1);
		dup2(fd, 2);
	}
	execv(words[0], (char *const *)words);
	_exit(127);
}

static size_t append(const char **words, size_t n, const char *const *more)
{
	for (; more && *more && n < MAX_WORDS - 1; more++)
		words[n++] = *more;
	words[n] = NULL;
	return n;
}

static pid_t start_program(const struct soft_capture *c, const char *program,
			   const char *const *args)
{
	const char *words[MAX_WORDS];
	char path[256], output[160];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/programs/%s", build_folder(), program);
	snprintf(output, sizeof(output), "%s/out", c->dir);
	words[0] = path;
	append(words, 1, args);
	pid = spawn(words, output);
	/* It prints its pid when it has set up. */
	for (int i = 0; i < 500; i++) {
		char *text = NULL;
		size_t len = 0;
		int err = fs__read(output, &text, &len);

		free(text);
		if (!err && len)
			break;
		usleep(10000);
	}
	return pid;
}

static void print_file(const char *path)
{
	char *text;
	size_t len;

	if (!fs__read(path, &text, &len)) {
		print_message("%s", text);
		free(text);
	}
}

void soft_capture__make(struct soft_capture *c, const char *program, const char *const *args,
			const char *const *options, int expected)
{
	const char *words[MAX_WORDS];
	char path[256], pid[16], log[160];
	int status;
	size_t n;

	snprintf(c->dir, sizeof(c->dir), "/tmp/mtbpf-test-XXXXXX");
	assert_non_null(mkdtemp(c->dir));
	snprintf(c->recording, sizeof(c->recording), "%s/r.mtbpf", c->dir);
	snprintf(c->truth, sizeof(c->truth), "%s/truth", c->dir);
	snprintf(log, sizeof(log), "%s/log", c->dir);
	snprintf(path, sizeof(path), "%s/mtbpf", build_folder());
	c->pid = start_program(c, program, args);
	snprintf(pid, sizeof(pid), "%d", c->pid);
	n = append(words, 0,
		   (const char *const[]){path, "record", "-source", "soft", "-pid", pid, "-o",
					 c->recording, "-truth", c->truth, NULL});
	append(words, n, options);
	waitpid(spawn(words, log), &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
		print_file(log);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), expected);
}

bool soft_capture__target_is_free(const struct soft_capture *c)
{
	char path[64], *text;
	bool is_free;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", c->pid);
	if (fs__read(path, &text, &len))
		return false;
	is_free = strstr(text, "TracerPid:\t0\n") && !strstr(text, "State:\tT") &&
		  !strstr(text, "State:\tt") && !strstr(text, "State:\tZ");
	free(text);
	return is_free;
}

void soft_capture__end(struct soft_capture *c)
{
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	fs__remove_dir(c->dir);
}
