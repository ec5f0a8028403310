// SPDX-License-Identifier: MIT
#include "selftest/perf_judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftest/programs.h"
#include "util/cleanup.h"

static bool is_ours(const char *name)
{
	for (unsigned int i = 0; i < n_program_functions; i++)
		if (!strcmp(program_functions[i].name, name))
			return true;
	return false;
}

/* "1234  call  55ba45e3a990 iterate =>  55ba45e3aa50 mtbpf_selftest_calls_main" */
static void count_line(char *line, struct perf_calls *calls)
{
	char *name;

	if (strstr(line, "instruction trace error")) {
		calls->errors++;
		return;
	}
	line[strcspn(line, "\n")] = '\0';
	name = strrchr(line, ' ');
	if (name && strstr(line, " call ") && is_ours(name + 1))
		calls->perfs++;
}

static pid_t start_perf(const char *recording, int out)
{
	const char *const words[] = {
		"perf", "script", "-i", recording, "--itrace=be", "-F", "tid,flags,ip,sym,addr",
		NULL};
	pid_t pid = fork();

	if (pid)
		return pid;
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execvp("perf", (char *const *)words);
	_exit(127);
}

/* Its exit code, or -errno. */
static int read_perf(const char *recording, struct perf_calls *calls)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int ends[2], status;
	pid_t pid;
	FILE *f;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = start_perf(recording, ends[1]);
	close(ends[1]);
	f = fdopen(ends[0], "r");
	while (f && getline(&line, &size, f) > 0)
		count_line(line, calls);
	if (f)
		fclose(f);
	else
		close(ends[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -ECHILD;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

int perf_judge__count(const struct decoded *decoded, const char *recording,
		      struct perf_calls *calls)
{
	int code;

	*calls = (struct perf_calls){0};
	code = read_perf(recording, calls);
	if (code == 127)
		return -ENOENT;
	/* perf may end with an error, or crash, after it has printed all branches. */
	if (code && !calls->perfs)
		return -EIO;
	for (size_t i = 0; i < decoded->trees.n; i++) {
		const struct call_tree *tree = &decoded->trees.v[i];

		for (size_t c = 0; c < tree->calls.n; c++) {
			const struct call *call = &tree->calls.v[c];

			calls->ours += call->kind == CALL_FUNCTION && call->function &&
				       !(call->flags & CALL_INFERRED_START) &&
				       is_ours(call->function->name);
		}
	}
	return 0;
}
