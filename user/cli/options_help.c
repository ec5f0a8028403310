// SPDX-License-Identifier: MIT
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/options_internal.h"

/* Help's second column stands here at the latest. */
#define MAX_LABEL_WIDTH 28

const char *option__arg_name(const struct option_spec *spec)
{
	return spec->arg ? spec->arg : "VALUE";
}

static void add_label(char *label, size_t size, const char *dash, const char *word)
{
	size_t len = strlen(label);

	snprintf(label + len, size - len, "%s%s", dash, word);
}

/* "-output, -o FILE" */
static void format_label(const struct option_spec *spec, char *label, size_t size)
{
	char letter[] = {spec->letter, '\0'};

	label[0] = '\0';
	add_label(label, size, "-", spec->name);
	if (spec->alias)
		add_label(label, size, ", -", spec->alias);
	if (spec->letter)
		add_label(label, size, ", -", letter);
	if (spec->kind == OPT_CHOICE && !spec->arg) {
		for (size_t i = 0; spec->choices[i]; i++)
			add_label(label, size, i ? "|" : " ", spec->choices[i]);
	} else if (spec->kind != OPT_FLAG) {
		add_label(label, size, " ", option__arg_name(spec));
	}
}

/* Of a terminal; elsewhere lines are as long as they are, for grep. */
static size_t columns_of(FILE *out)
{
	struct winsize size;

	return isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col
		       ? size.ws_col
		       : SIZE_MAX;
}

static bool fits(const char *text, size_t columns, size_t indent)
{
	for (; *text; text += text[0] == '\n') {
		size_t n = strcspn(text, "\n");

		if (indent + n > columns)
			return false;
		text += n;
	}
	return true;
}

/*
 * Text and a newline, from column `indent` on; so do the lines begin that it takes. Lines of its
 * own it keeps where there is room for them.
 */
static void put_wrapped(FILE *out, const char *text, size_t indent)
{
	size_t columns = columns_of(out), at = indent;
	bool keeps_lines = columns == SIZE_MAX || fits(text, columns, indent);
	char before = '\n';

	while (*text) {
		size_t n = strcspn(text, " \n");

		if (at > indent && ((before == '\n' && keeps_lines) || at + 1 + n > columns)) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			putc(' ', out);
			at++;
		}
		fwrite(text, 1, n, out);
		at += n;
		before = text[n];
		text += n + (text[n] != '\0');
	}
	putc('\n', out);
}

static void print_line(FILE *out, int width, const char *label, const char *help)
{
	if ((int)strlen(label) > width)
		fprintf(out, "  %s\n  %*s  ", label, width, "");
	else
		fprintf(out, "  %-*s  ", width, label);
	put_wrapped(out, help, (size_t)width + 4);
}

void options__print_help(const struct option_table *table, FILE *out)
{
	char label[256];
	size_t width = strlen("-help, -h");

	for (size_t i = 0; i < table->count; i++) {
		size_t len;

		format_label(&table->specs[i], label, sizeof(label));
		len = strlen(label);
		if (len > width && len <= MAX_LABEL_WIDTH)
			width = len;
	}
	for (const char *const *example = table->examples; example && *example; example++)
		fprintf(out, "  %s%s", *example, example[1] ? "\n" : "\n\n");
	fputs("usage: mtbpf ", out);
	put_wrapped(out, table->usage, strlen("usage: mtbpf "));
	putc('\n', out);
	put_wrapped(out, table->summary, 0);
	fputs("\noptions:\n", out);
	for (size_t i = 0; i < table->count; i++) {
		format_label(&table->specs[i], label, sizeof(label));
		print_line(out, (int)width, label, table->specs[i].help);
	}
	print_line(out, (int)width, "-help, -h", "print this text");
}
