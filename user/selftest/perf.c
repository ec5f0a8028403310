// SPDX-License-Identifier: MIT
#include "selftest/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftest/noted.h"
#include "util/cleanup.h"
#include "util/fs.h"

/* ---- perf script */

static bool is_ours(const char *name)
{
	for (unsigned int i = 0; i < n_program_functions; i++)
		if (!strcmp(program_functions[i].name, name))
			return true;
	return false;
}

/* A recording from another machine has the files in its own folder. */
static pid_t start_script(const char *recording, int out)
{
	char images[PATH_MAX];
	const char *const words[] = {
		"perf", "--buildid-dir",	 images, "script", "-i", recording, "--itrace=be",
		"-F",	"tid,flags,ip,sym,addr", NULL};
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(images, sizeof(images), "%s/images", recording);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execvp("perf", (char *const *)words);
	_exit(127);
}

/* Returns its exit code, or -errno. */
static int read_script(const char *recording, struct perf_calls *calls)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int ends[2], status;
	pid_t pid;
	FILE *f;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = start_script(recording, ends[1]);
	close(ends[1]);
	f = fdopen(ends[0], "r");
	/* "1234  call  55ba45e3a990 iterate =>  55ba45e3aa50 mtbpf_selftest_calls_main" */
	while (f && getline(&line, &size, f) > 0) {
		char *name;

		line[strcspn(line, "\n")] = '\0';
		name = strrchr(line, ' ');
		if (strstr(line, "instruction trace error"))
			calls->errors++;
		else if (name && strstr(line, " call ") && is_ours(name + 1))
			calls->perfs++;
	}
	if (f)
		fclose(f);
	else
		close(ends[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -ECHILD;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

int perf_script__count(const struct decoded *decoded, const char *recording,
		       struct perf_calls *calls)
{
	int code;

	*calls = (struct perf_calls){0};
	code = read_script(recording, calls);
	if (code == 127)
		return -ENOENT;
	/* perf may end with an error, or crash, after it has printed all branches. */
	if (code && !calls->perfs)
		return -EIO;
	VEC_EACH(&decoded->trees, tree) {
		VEC_EACH(&tree->calls, call)
			calls->ours += call->kind == CALL_FUNCTION && call->function &&
				       !(call->flags & CALL_INFERRED_START) &&
				       is_ours(call->function->name);
	}
	return 0;
}

/* ---- perf trace */

/* `perf trace` prints each call to stderr, unbuffered, when the call returns. */
static _Noreturn void become_trace(pid_t target, const char *path)
{
	char pid[16];
	const char *const words[] = {"perf", "trace", "-e", "getppid,nanosleep,clock_nanosleep",
				     "-p",   pid,     NULL};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	snprintf(pid, sizeof(pid), "%d", target);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(126);
	execvp("perf", (char *const *)words);
	_exit(127);
}

/* True if the output tells of system calls. */
static bool has_seen(const struct perf_trace *trace)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	return !fs__read(trace->path, &text, &len) && strstr(text, "getppid(");
}

int perf_trace__begin(struct perf_trace *trace, pid_t target, const char *dir)
{
	int status;

	snprintf(trace->path, sizeof(trace->path), "%.*s/perf-trace.txt", PATH_MAX - 20, dir);
	trace->pid = fork();
	if (!trace->pid)
		become_trace(target, trace->path);
	if (trace->pid < 0) {
		trace->pid = 0;
		return -errno;
	}
	for (int i = 0; i < 500 && !has_seen(trace); i++) {
		if (waitpid(trace->pid, &status, WNOHANG) == trace->pid) {
			trace->pid = 0;
			return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : -EIO;
		}
		usleep(20000);
	}
	return has_seen(trace) ? 0 : -EIO;
}

/* Counts the calls between the first and the last nanosleep(). */
static void count_syscalls(FILE *f, struct perf_syscalls *syscalls)
{
	_cleanup_free_ char *line = NULL;
	bool has_begun = false;
	unsigned int n = 0;
	size_t size = 0;

	while (getline(&line, &size, f) > 0) {
		syscalls->lost += strstr(line, "LOST") != NULL;
		n += strstr(line, "getppid(") != NULL;
		if (!strstr(line, "nanosleep("))
			continue;
		if (has_begun) {
			syscalls->iterations++;
			syscalls->calls += n;
		}
		has_begun = true;
		n = 0;
	}
}

void perf_trace__end(struct perf_trace *trace, struct perf_syscalls *syscalls)
{
	FILE *f;

	*syscalls = (struct perf_syscalls){0};
	if (trace->pid) {
		kill(trace->pid, SIGINT);
		for (int i = 0; i < 500 && !waitpid(trace->pid, NULL, WNOHANG); i++)
			usleep(20000);
		kill(trace->pid, SIGKILL);
		waitpid(trace->pid, NULL, 0);
	}
	trace->pid = 0;
	f = fopen(trace->path, "re");
	if (!f)
		return;
	count_syscalls(f, syscalls);
	fclose(f);
	unlink(trace->path);
}
