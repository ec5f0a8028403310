// SPDX-License-Identifier: MIT
/* man pages: scdoc(5). */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "manual/manual.h"
#include "cli/options_internal.h"

/* What means something to scdoc stands behind a backslash. */
static void put_char(FILE *out, char c)
{
	if (strchr("\\*_#`~", c))
		putc('\\', out);
	putc(c, out);
}

static void put_text(FILE *out, const char *text)
{
	for (; *text; text++)
		put_char(out, *text);
}

static void put_marked(FILE *out, char mark, const char *text, size_t len)
{
	putc(mark, out);
	for (size_t i = 0; i < len; i++)
		put_char(out, text[i]);
	putc(mark, out);
}

static size_t span(const char *text, int (*is)(int), const char *also)
{
	size_t n = 0;

	while (is((unsigned char)text[n]) || (text[n] && strchr(also, text[n])))
		n++;
	return n;
}

/* A usage: options are bold, what the user puts in their place is underlined. */
static void put_usage(FILE *out, const char *usage)
{
	bool at_start = true;

	while (*usage) {
		size_t n = 0;

		if (at_start && usage[0] == '-' && islower((unsigned char)usage[1]))
			put_marked(out, '*', usage, n = 1 + span(usage + 1, islower, "-"));
		else if (at_start && isupper((unsigned char)usage[0]))
			put_marked(out, '_', usage, n = span(usage, isupper, ""));
		else
			put_char(out, *usage);
		usage += n ? n : 1;
		at_start = !isalnum((unsigned char)usage[-1]) && usage[-1] != '-';
	}
}

void man__title(FILE *out, const struct command *command)
{
	fprintf(out, "mtbpf%s%s(1) \"mtbpf " MTBPF_VERSION "\" \"mtbpf\"\n", command ? "-" : "",
		command ? command->name : "");
}

void man__name(FILE *out, const struct command *command)
{
	fprintf(out, "mtbpf-%s - ", command->name);
	put_text(out, command->summary);
	putc('\n', out);
}

void man__synopsis(FILE *out, const struct command *command)
{
	const char *name = command->name;

	fprintf(out, "*mtbpf %s*", name);
	put_usage(out, command->options->usage + strlen(name));
	putc('\n', out);
}

static void put_names(FILE *out, const struct option_spec *spec)
{
	fprintf(out, "*-%s*", spec->name);
	if (spec->alias)
		fprintf(out, ", *-%s*", spec->alias);
	if (spec->letter)
		fprintf(out, ", *-%c*", spec->letter);
}

/* The choices, where the help does not say them all. */
static void put_choices(FILE *out, const struct option_spec *spec)
{
	bool all = true;

	for (size_t i = 0; spec->choices[i]; i++)
		all = all && strstr(spec->help, spec->choices[i]);
	if (all)
		return;
	fputs("; one of: ", out);
	for (size_t i = 0; spec->choices[i]; i++) {
		fputs(i ? ", " : "", out);
		put_text(out, spec->choices[i]);
	}
}

static void put_option(FILE *out, const struct option_spec *spec)
{
	put_names(out, spec);
	if (spec->kind != OPT_FLAG) {
		putc(' ', out);
		put_usage(out, option__arg_name(spec));
	}
	fputs("\n\t", out);
	put_text(out, spec->help);
	if (spec->kind == OPT_CHOICE)
		put_choices(out, spec);
	fputs("\n\n", out);
}

void man__options(FILE *out, const struct command *command)
{
	for (size_t i = 0; i < command->options->count; i++)
		put_option(out, &command->options->specs[i]);
	fputs("*-help*, *-h*\n\tprint a short form of this text\n", out);
}

void man__examples(FILE *out, const struct command *command)
{
	fputs("```\n", out);
	for (const char *const *line = command->options->examples; line && *line; line++)
		fprintf(out, "%s\n", *line);
	fputs("```\n", out);
}

void man__see_also(FILE *out, const struct command *command)
{
	if (command)
		fputs("*mtbpf*(1), ", out);
	for (size_t i = 0; commands[i].name; i++)
		if (commands[i].options && &commands[i] != command)
			fprintf(out, "*mtbpf-%s*(1), ", commands[i].name);
	fputs("*perf*(1)\n", out);
}

void man__commands(FILE *out, const struct command *command)
{
	for (size_t i = 0; commands[i].name; i++) {
		fprintf(out, commands[i].options ? "*mtbpf-%s*(1)\n\t" : "*mtbpf %s*\n\t",
			commands[i].name);
		put_text(out, commands[i].summary);
		fputs("\n\n", out);
	}
}
