// SPDX-License-Identifier: MIT
#include "cli/picker_internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/names.h"

/* Where nobody knows how many lines a screen has. More than these nobody reads. */
#define SHOWN_MAX 200
/* Below the list: what the answer may be, and the answer. */
#define LINES_BELOW 3
#define TAB	    8

struct typed {
	const char *what;
	const char *const *lines;
	size_t n;
	FILE *out;
	size_t rows, columns; /* there is room for */
	char words[128];      /* that the lines left have, one space between two */
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
	/* A tab, and the cursor. */
	if (size.ws_col > 2 * TAB)
		typed->columns = size.ws_col - TAB - 1;
}

/* How many bytes of it a row has room for. */
static int cut(const char *text, size_t columns)
{
	const char *end = text;

	/* Bytes that go on with a character, in UTF-8, take no column. */
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

/* How many lines have the words; *first of them. */
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

/* False: nothing was typed, ever. */
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

/* The index, or -1: it is no number, or that of a line that is not left. */
static int number_of(const struct typed *typed, const char *answer)
{
	char *end;
	unsigned long number = strtoul(answer, &end, 10);

	if (*end || number < 1 || number > typed->n ||
	    !has_words(typed->lines[number - 1], typed->words))
		return -1;
	return (int)number - 1;
}

/* How many lines are left: as before where none has the words. Of nothing, all. */
static size_t narrow(struct typed *typed, const char *words, size_t left, size_t *only)
{
	size_t found = count(typed, words, only);

	if (!found) {
		fprintf(typed->out, "no line has '%s'\n", words);
		return left;
	}
	strcpy(typed->words, words);
	show(typed, found);
	return found;
}

int picker__pick_typed(const char *what, const char *const *lines, size_t n, FILE *in, FILE *out)
{
	struct typed typed = {.what = what, .lines = lines, .n = n, .out = out};
	char answer[sizeof(typed.words)];
	size_t only = 0, left = n;
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
		left = narrow(&typed, answer, left, &only);
	}
	return -ECANCELED;
}
