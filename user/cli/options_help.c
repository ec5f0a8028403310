// SPDX-License-Identifier: MIT
#include <string.h>

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

static void print_line(FILE *out, int width, const char *label, const char *help)
{
	if ((int)strlen(label) > width)
		fprintf(out, "  %s\n  %*s  %s\n", label, width, "", help);
	else
		fprintf(out, "  %-*s  %s\n", width, label, help);
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
	fprintf(out, "usage: mtbpf %s\n\n%s\n\noptions:\n", table->usage, table->summary);
	for (size_t i = 0; i < table->count; i++) {
		format_label(&table->specs[i], label, sizeof(label));
		print_line(out, (int)width, label, table->specs[i].help);
	}
	print_line(out, (int)width, "-help, -h", "print this text");
}
