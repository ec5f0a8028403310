// SPDX-License-Identifier: MIT
/*
 * The build runs this program to make man pages (in scdoc's format) and shell completion. It copies
 * a template from stdin to stdout and replaces each line "@PART@" or "@PART COMMAND@" by text from
 * the option tables.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cmd.h"
#include "util/cleanup.h"
#include "util/log.h"

/* ---- man pages: scdoc(5) */

/* Escapes scdoc's special characters. */
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

/* In a usage line options are bold, and placeholders are underlined. */
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

static void man__title(FILE *out, const struct command *command)
{
	fprintf(out, "mtbpf%s%s(1) \"mtbpf " MTBPF_VERSION "\" \"mtbpf\"\n", command ? "-" : "",
		command ? command->name : "");
}

static void man__name(FILE *out, const struct command *command)
{
	fprintf(out, "mtbpf-%s - ", command->name);
	put_text(out, command->summary);
	putc('\n', out);
}

static void man__synopsis(FILE *out, const struct command *command)
{
	const char *name = command->name;

	fprintf(out, "*mtbpf %s*", name);
	put_usage(out, command->options->usage + strlen(name));
	putc('\n', out);
}

static void put_option(FILE *out, const struct option_spec *spec)
{
	bool names_all = true;

	fprintf(out, "*-%s*", spec->name);
	if (spec->alias)
		fprintf(out, ", *-%s*", spec->alias);
	if (spec->letter)
		fprintf(out, ", *-%c*", spec->letter);
	if (spec->kind != OPT_FLAG) {
		putc(' ', out);
		put_usage(out, option__arg_name(spec));
	}
	fputs("\n\t", out);
	put_text(out, spec->help);
	/* Lists the choices if the help does not name all of them. */
	for (size_t i = 0; spec->kind == OPT_CHOICE && spec->choices[i]; i++)
		names_all = names_all && strstr(spec->help, spec->choices[i]);
	for (size_t i = 0; !names_all && spec->choices[i]; i++) {
		fputs(i ? ", " : "; one of: ", out);
		put_text(out, spec->choices[i]);
	}
	fputs("\n\n", out);
}

static void man__options(FILE *out, const struct command *command)
{
	for (size_t i = 0; i < command->options->count; i++)
		put_option(out, &command->options->specs[i]);
	fputs("*-help*, *-h*\n\tprint a short form of this text\n", out);
}

static void man__examples(FILE *out, const struct command *command)
{
	fputs("```\n", out);
	for (const char *const *line = command->options->examples; line && *line; line++)
		fprintf(out, "%s\n", *line);
	fputs("```\n", out);
}

static void man__see_also(FILE *out, const struct command *command)
{
	if (command)
		fputs("*mtbpf*(1), ", out);
	for (size_t i = 0; commands[i].name; i++)
		if (commands[i].options && &commands[i] != command)
			fprintf(out, "*mtbpf-%s*(1), ", commands[i].name);
	fputs("*perf*(1)\n", out);
}

static void man__commands(FILE *out, const struct command *command)
{
	for (size_t i = 0; commands[i].name; i++) {
		fprintf(out, commands[i].options ? "*mtbpf-%s*(1)\n\t" : "*mtbpf %s*\n\t",
			commands[i].name);
		put_text(out, commands[i].summary);
		fputs("\n\n", out);
	}
}

/* ---- completion: the templates for bash, zsh and fish read the same rows */

/* The values that an option takes, by its name (NULL: any) and its argument's name. */
static const struct {
	const char *option, *arg, *takes;
} kinds[] = {
	{"pid", "PID", "pids"},	       {"name", "GLOB", "names"},
	{"symbol", "NAME", "symbols"}, {"container", "NAME", "containers"},
	{"cgroup", "PATH", "cgroups"}, {NULL, "FILE", "files"},
	{NULL, "DIR", "folders"},
};

static const char *takes(const struct option_spec *spec)
{
	if (spec->kind == OPT_FLAG)
		return "none";
	if (spec->choices)
		return "choices";
	for (size_t i = 0; spec->arg && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((!kinds[i].option || !strcmp(kinds[i].option, spec->name)) &&
		    !strcmp(kinds[i].arg, spec->arg))
			return kinds[i].takes;
	return "any";
}

/* The end of a row. It is inside single quotes; '"'"' is one such quote in all three shells. */
static void put_help(FILE *out, const char *help)
{
	for (; *help; help++)
		*help == '\'' ? fputs("'\"'\"'", out) : putc(*help, out);
	putc('\n', out);
}

static void put_row(FILE *out, const char *command, const struct option_spec *spec)
{
	fprintf(out, "%s\t%s", command, takes(spec));
	for (size_t i = 0; spec->choices && spec->choices[i]; i++)
		fprintf(out, " %s", spec->choices[i]);
	fprintf(out, "\t%s\t-%s",
		spec->kind == OPT_LIST	  ? "many"
		: spec->kind == OPT_COUNT ? "maybe"
					  : "once",
		spec->name);
	if (spec->alias)
		fprintf(out, " -%s", spec->alias);
	if (spec->letter)
		fprintf(out, " -%c", spec->letter);
	fprintf(out, "\t%s\t", spec->kind == OPT_FLAG ? "-" : option__arg_name(spec));
	put_help(out, spec->help);
}

/*
 * A row for each option, with tabs between its parts: the command; what the option takes, with the
 * choices; "many" if it can be repeated, "maybe" if it may lack its argument, "alone" for -help;
 * its names; its argument's name; help. Commands are rows of the command "mtbpf".
 */
static void completion__rows(FILE *out, const struct command *command)
{
	for (size_t i = 0; commands[i].name; i++) {
		const struct option_table *table = commands[i].options;

		fprintf(out, "mtbpf\tnone\tonce\t%s\t-\t", commands[i].name);
		put_help(out, commands[i].summary);
		for (size_t j = 0; table && j < table->count; j++)
			put_row(out, commands[i].name, &table->specs[j]);
		if (table)
			fprintf(out, "%s\tnone\talone\t-help\t-\tprint its help\n",
				commands[i].name);
	}
}

static const struct part {
	const char *name;
	void (*write)(FILE *out, const struct command *command);
	bool of_command; /* the template must name a command */
} parts[] = {
	{"title", man__title, false},	    {"name", man__name, true},
	{"synopsis", man__synopsis, true},  {"options", man__options, true},
	{"examples", man__examples, true},  {"see-also", man__see_also, false},
	{"commands", man__commands, false}, {"rows", completion__rows, false},
};

/* -1 if the line does not name a part, or not a command that the part needs. */
static int write_part(char *line, FILE *out)
{
	const size_t n_parts = sizeof(parts) / sizeof(parts[0]);
	char *name = strtok(line, "@ "), *of = strtok(NULL, "@ ");
	const struct command *command = of ? command__find(of) : NULL;
	size_t i = 0;

	while (name && i < n_parts && strcmp(parts[i].name, name))
		i++;
	if (!name || i == n_parts || (of ? !command || !command->options : parts[i].of_command))
		return -1;
	parts[i].write(out, command);
	return 0;
}

int main(void)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t len;

	for (int n = 1; (len = getline(&line, &size, stdin)) > 0; n++) {
		if (line[len - 1] == '\n')
			line[--len] = '\0';
		if (len <= 2 || line[0] != '@' || line[len - 1] != '@') {
			puts(line);
		} else if (write_part(line, stdout)) {
			log__error("line %d of the template: there is no such part", n);
			return EXIT_FAILED;
		}
	}
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_OK;
}
