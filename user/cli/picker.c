// SPDX-License-Identifier: MIT
#include "cli/picker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/names.h"

/* The number of lines shown if the height of the screen is not known. */
#define SHOWN_MAX 200
/* Below the list: the question and the answer. */
#define LINES_BELOW 3
#define TAB	    8

struct typed {
	const char *what;
	const char *const *lines;
	size_t n;
	FILE *out;
	size_t rows, columns; /* that fit */
	char words[128];      /* words that all remaining lines contain, separated by spaces */
};

static void measure(struct typed *typed)
{
	struct winsize size;

	typed->rows = SHOWN_MAX;
	typed->columns = SIZE_MAX;
	if (ioctl(fileno(typed->out), TIOCGWINSZ, &size))
		return;
	if (size.ws_row > 2 * LINES_BELOW)
		typed->rows = size.ws_row - LINES_BELOW;
	/* Leaves room for a tab, and for the cursor. */
	if (size.ws_col > 2 * TAB)
		typed->columns = size.ws_col - TAB - 1;
}

/* The number of bytes of text that fit into the columns. */
static int cut(const char *text, size_t columns)
{
	const char *end = text;

	/* In UTF-8 only the first byte of a character takes a column. */
	for (; *end; end++)
		if ((*end & 0xc0) != 0x80 && !columns--)
			break;
	return (int)(end - text);
}

static bool has_words(const char *line, const char *words)
{
	char copy[sizeof(((struct typed *)0)->words)], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (!strcasestr(line, word))
			return false;
	return true;
}

/* Counts the lines that contain the words; *first is the first of them. */
static size_t count(const struct typed *typed, const char *words, size_t *first)
{
	size_t left = 0;

	for (size_t i = typed->n; i-- > 0;) {
		if (!has_words(typed->lines[i], words))
			continue;
		*first = i;
		left++;
	}
	return left;
}

static void show(const struct typed *typed, size_t left)
{
	size_t shown = 0, len;
	char buf[LABEL_SIZE];
	const char *line;

	for (size_t i = 0; i < typed->n && shown < typed->rows; i++) {
		if (!has_words(typed->lines[i], typed->words))
			continue;
		line = label__clean(buf, typed->lines[i], &len);
		fprintf(typed->out, "%zu\t%.*s\n", i + 1, cut(line, typed->columns), line);
		shown++;
	}
	if (shown < left)
		fprintf(typed->out, "... and %zu more\n", left - shown);
}

/* False at the end of the input. */
static bool ask(const struct typed *typed, size_t left, FILE *in, char *answer, size_t size)
{
	fprintf(typed->out, "%s: a number, or a part of the line%s: ", typed->what,
		left == 1 ? "; Enter takes this one" : "");
	fflush(typed->out);
	if (!fgets(answer, (int)size, in))
		return false;
	answer[strcspn(answer, "\n")] = '\0';
	return true;
}

/* The index, or -1 if the answer is not the number of a line that is left. */
static int number_of(const struct typed *typed, const char *answer)
{
	char *end;
	unsigned long number = strtoul(answer, &end, 10);

	if (*end || number < 1 || number > typed->n ||
	    !has_words(typed->lines[number - 1], typed->words))
		return -1;
	return (int)number - 1;
}

int picker__pick_typed(const char *what, const char *const *lines, size_t n, FILE *in, FILE *out)
{
	struct typed typed = {.what = what, .lines = lines, .n = n, .out = out};
	char answer[sizeof(typed.words)];
	size_t only = 0, left = n, found;
	int number;

	measure(&typed);
	show(&typed, left);
	fprintf(out, "(with fzf installed, this is a search)\n");
	while (ask(&typed, left, in, answer, sizeof(answer))) {
		if (!*answer && left == 1)
			return (int)only;
		number = number_of(&typed, answer);
		if (number >= 0)
			return number;
		/* Changes nothing if no line has the words. */
		found = count(&typed, answer, &only);
		if (!found) {
			fprintf(out, "no line has '%s'\n", answer);
			continue;
		}
		left = found;
		strcpy(typed.words, answer);
		show(&typed, left);
	}
	return -ECANCELED;
}

bool picker__is_possible(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

/* All lines as one text, each after its number. NULL: no memory. */
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

static pid_t start_fzf(const char *what, int *in, int *out)
{
	int to[2], from[2];
	char prompt[64];
	pid_t pid;

	snprintf(prompt, sizeof(prompt), "%s> ", what);
	if (pipe2(to, O_CLOEXEC))
		return -errno;
	if (pipe2(from, O_CLOEXEC)) {
		close(to[0]);
		close(to[1]);
		return -errno;
	}
	fflush(NULL);
	pid = fork();
	/* fzf opens the terminal itself; its stdin and stdout carry the lines and the answer. */
	if (!pid) {
		if (dup2(to[0], STDIN_FILENO) >= 0 && dup2(from[1], STDOUT_FILENO) >= 0)
			execlp("fzf", "fzf", "--delimiter=\t", "--with-nth=2..", "--prompt", prompt,
			       (char *)NULL);
		_exit(127);
	}
	if (pid < 0) {
		pid = -errno;
		close(to[1]);
		close(from[0]);
	}
	close(to[0]);
	close(from[1]);
	*in = to[1];
	*out = from[0];
	return pid;
}

/* The index; -ECANCELED: nothing was picked; -ENOENT: fzf cannot be started. */
static int pick_by_fzf(const char *what, const char *text, size_t len, size_t n)
{
	char line[4096] = "", *end;
	int in = -1, out = -1, status;
	pid_t pid = start_fzf(what, &in, &out);
	unsigned long number;
	void (*before)(int);

	if (pid < 0)
		return -ENOENT;
	/* fzf may end before it has read everything. */
	before = signal(SIGPIPE, SIG_IGN);
	fs__write_fd(in, text, len);
	signal(SIGPIPE, before);
	close(in);
	if (read(out, line, sizeof(line) - 1) < 0)
		line[0] = '\0';
	close(out);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	/* fzf answers with the line, "12\tTEXT". */
	number = strtoul(line, &end, 10);
	return end == line || number < 1 || number > n ? -ECANCELED : (int)number - 1;
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
