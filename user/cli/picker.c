// SPDX-License-Identifier: MIT
#include "cli/picker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/picker_internal.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/names.h"

bool picker__is_possible(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

/* What begins the line "12\tTEXT", or -ECANCELED. */
static int index_from(const char *text, size_t n)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	return end == text || number < 1 || number > n ? -ECANCELED : (int)number - 1;
}

/* All lines as one text, each behind its number. NULL: no memory. */
static char *join(const char *const *lines, size_t n, size_t *len)
{
	char *text = NULL, buf[LABEL_SIZE];
	FILE *file = open_memstream(&text, len);
	size_t line_len;

	if (!file)
		return NULL;
	for (size_t i = 0; i < n; i++)
		fprintf(file, "%zu\t%s\n", i + 1, label__clean(buf, lines[i], &line_len));
	if (!fclose(file))
		return text;
	free(text);
	return NULL;
}

/* The program's own screen is the terminal, whatever its stdin and stdout are. */
static void exec_fzf(const char *what, int in, int out)
{
	char prompt[64];

	snprintf(prompt, sizeof(prompt), "%s> ", what);
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execlp("fzf", "fzf", "--delimiter=\t", "--with-nth=2..", "--prompt", prompt,
		       (char *)NULL);
	_exit(127);
}

/* It may be left before it has read everything. */
static void feed(int fd, const char *text, size_t len)
{
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);

	fs__write_fd(fd, text, len);
	signal(SIGPIPE, before);
	close(fd);
}

static pid_t start_fzf(const char *what, int *in, int *out)
{
	int to[2], from[2];
	pid_t pid;

	if (pipe2(to, O_CLOEXEC))
		return -errno;
	if (pipe2(from, O_CLOEXEC)) {
		close(to[0]);
		close(to[1]);
		return -errno;
	}
	fflush(NULL);
	pid = fork();
	if (!pid)
		exec_fzf(what, to[0], from[1]);
	if (pid < 0)
		pid = -errno;
	close(to[0]);
	close(from[1]);
	*in = to[1];
	*out = from[0];
	return pid;
}

/* The index; -ECANCELED; -ENOENT: there is no fzf. */
static int pick_by_fzf(const char *what, const char *text, size_t len, size_t n)
{
	char line[4096] = "";
	int in = -1, out = -1, status;
	pid_t pid = start_fzf(what, &in, &out);
	ssize_t got;

	if (pid < 0)
		return -ENOENT;
	feed(in, text, len);
	got = read(out, line, sizeof(line) - 1);
	close(out);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	return got > 0 ? index_from(line, n) : -ECANCELED;
}

int picker__pick(const char *what, const char *const *lines, size_t n)
{
	size_t len;
	_cleanup_free_ char *text = join(lines, n, &len);
	int picked;

	if (!text)
		return -ENOMEM;
	picked = pick_by_fzf(what, text, len, n);
	if (picked == -ENOENT)
		picked = picker__pick_typed(what, lines, n, stdin, stderr);
	return picked;
}
