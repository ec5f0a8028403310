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

/* ---- completion for bash, zsh and fish; the templates know how words are found */

/* The kind of an option's argument, for completion; kind_names has the templates' names. */
enum value_kind {
	VALUE_NONE,    /* no argument */
	VALUE_ANY,     /* cannot be completed */
	VALUE_CHOICES, /* spec->choices */
	VALUE_PIDS,
	VALUE_NAMES, /* of processes */
	VALUE_SYMBOLS,
	VALUE_CONTAINERS,
	VALUE_CGROUPS,
	VALUE_FILES,
	VALUE_FOLDERS,
};

/* The kind for an option and its argument's name; option NULL: for the argument's name alone. */
static const struct {
	const char *option, *arg;
	enum value_kind kind;
} kinds[] = {
	{"pid", "PID", VALUE_PIDS},	   {"name", "GLOB", VALUE_NAMES},
	{"symbol", "NAME", VALUE_SYMBOLS}, {"container", "NAME", VALUE_CONTAINERS},
	{"cgroup", "PATH", VALUE_CGROUPS}, {NULL, "FILE", VALUE_FILES},
	{NULL, "DIR", VALUE_FOLDERS},
};

static const char *const kind_names[] = {
	[VALUE_NONE] = "none",
	[VALUE_ANY] = "any",
	[VALUE_CHOICES] = "choices",
	[VALUE_PIDS] = "pids",
	[VALUE_NAMES] = "names",
	[VALUE_SYMBOLS] = "symbols",
	[VALUE_CONTAINERS] = "containers",
	[VALUE_CGROUPS] = "cgroups",
	[VALUE_FILES] = "files",
	[VALUE_FOLDERS] = "folders",
};

static enum value_kind value_kind__of(const struct option_spec *spec)
{
	if (spec->kind == OPT_FLAG)
		return VALUE_NONE;
	if (spec->choices)
		return VALUE_CHOICES;
	for (size_t i = 0; spec->arg && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((!kinds[i].option || !strcmp(kinds[i].option, spec->name)) &&
		    !strcmp(kinds[i].arg, spec->arg))
			return kinds[i].kind;
	return VALUE_ANY;
}

static void put_choices(FILE *out, const struct option_spec *spec)
{
	for (size_t i = 0; spec->choices && spec->choices[i]; i++)
		fprintf(out, " %s", spec->choices[i]);
}

static void put_row(FILE *out, const char *name, const struct option_spec *spec)
{
	fprintf(out, "-%s %s", name, kind_names[value_kind__of(spec)]);
	put_choices(out, spec);
	putc('\n', out);
}

/* One line per name of an option: the name, the kind of argument, the choices. */
static void bash__tables(FILE *out, const struct command *command)
{
	fputs("_mtbpf_commands='", out);
	for (size_t i = 0; commands[i].name; i++)
		fprintf(out, "%s%s", i ? " " : "", commands[i].name);
	fputs("'\n_mtbpf_table() {\n\tcase $1 in\n", out);
	for (size_t i = 0; commands[i].name; i++) {
		const struct option_table *table = commands[i].options;

		if (!table)
			continue;
		fprintf(out, "\t%s) table='", commands[i].name);
		for (size_t j = 0; j < table->count; j++) {
			const struct option_spec *spec = &table->specs[j];
			char letter[] = {spec->letter, '\0'};

			put_row(out, spec->name, spec);
			if (spec->alias)
				put_row(out, spec->alias, spec);
			if (spec->letter)
				put_row(out, letter, spec);
		}
		fputs("-help none' ;;\n", out);
	}
	fputs("\t*) table= ;;\n\tesac\n}\n", out);
}

/* Prints text escaped for single quotes and [brackets]. */
static void put_help(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr("[]\\:", *text))
			fprintf(out, "\\%c", *text);
		else
			putc(*text, out);
	}
}

static void put_zsh_value(FILE *out, const struct option_spec *spec)
{
	enum value_kind kind = value_kind__of(spec);

	if (kind == VALUE_NONE)
		return;
	fprintf(out, "%s", spec->kind == OPT_COUNT ? "::" : ":");
	put_help(out, option__arg_name(spec));
	if (kind == VALUE_ANY) {
		fputs(": ", out);
	} else if (kind == VALUE_CHOICES) {
		fputs(":(", out);
		put_choices(out, spec);
		putc(')', out);
	} else {
		fprintf(out, ":_mtbpf_%s", kind_names[kind]);
	}
}

/* "'(-output -o)-output[...]:FILE:_mtbpf_files'": the names in () exclude each other. */
static void put_zsh_option(FILE *out, const char *name, const struct option_spec *spec)
{
	fputs("\t\t'", out);
	if (spec->kind == OPT_LIST) {
		putc('*', out);
	} else {
		fprintf(out, "(-%s", spec->name);
		if (spec->alias)
			fprintf(out, " -%s", spec->alias);
		if (spec->letter)
			fprintf(out, " -%c", spec->letter);
		putc(')', out);
	}
	fprintf(out, "-%s[", name);
	put_help(out, spec->help);
	putc(']', out);
	put_zsh_value(out, spec);
	fputs("'\n", out);
}

static void zsh__tables(FILE *out, const struct command *command)
{
	fputs("_mtbpf_commands=(\n", out);
	for (size_t i = 0; commands[i].name; i++) {
		fprintf(out, "\t'%s:", commands[i].name);
		put_help(out, commands[i].summary);
		fputs("'\n", out);
	}
	fputs(")\n_mtbpf_table() {\n\tspecs=()\n\tcase $1 in\n", out);
	for (size_t i = 0; commands[i].name; i++) {
		const struct option_table *table = commands[i].options;

		if (!table)
			continue;
		fprintf(out, "\t%s) specs=(\n", commands[i].name);
		for (size_t j = 0; j < table->count; j++) {
			const struct option_spec *spec = &table->specs[j];
			char letter[] = {spec->letter, '\0'};

			put_zsh_option(out, spec->name, spec);
			if (spec->alias)
				put_zsh_option(out, spec->alias, spec);
			if (spec->letter)
				put_zsh_option(out, letter, spec);
		}
		fputs("\t\t'(-)-help[print its help]'\n\t) ;;\n", out);
	}
	fputs("\tesac\n}\n", out);
}

/* A word in single quotes. */
static void put_fish_word(FILE *out, const char *text)
{
	putc('\'', out);
	for (; *text; text++) {
		if (strchr("'\\", *text))
			putc('\\', out);
		putc(*text, out);
	}
	putc('\'', out);
}

/* "complete -c mtbpf -n '__mtbpf_in attach' -o output -s o -r -F -d '...'" */
static void put_fish_option(FILE *out, const char *command, const struct option_spec *spec)
{
	enum value_kind kind = spec->kind == OPT_COUNT ? VALUE_NONE : value_kind__of(spec);

	fprintf(out, "complete -c mtbpf -n '__mtbpf_in %s' -o %s", command, spec->name);
	if (spec->alias)
		fprintf(out, " -o %s", spec->alias);
	if (spec->letter)
		fprintf(out, " -s %c", spec->letter);
	if (kind == VALUE_FILES)
		fputs(" -r -F", out);
	else if (kind != VALUE_NONE)
		fputs(" -x", out);
	if (kind == VALUE_CHOICES) {
		fputs(" -a '", out);
		put_choices(out, spec);
		putc('\'', out);
	} else if (kind != VALUE_FILES && kind != VALUE_NONE && kind != VALUE_ANY) {
		fprintf(out, " -a '(__mtbpf_%s)'", kind_names[kind]);
	}
	fputs(" -d ", out);
	put_fish_word(out, spec->help);
	putc('\n', out);
}

static void fish__tables(FILE *out, const struct command *command)
{
	for (size_t i = 0; commands[i].name; i++) {
		const struct option_table *table = commands[i].options;

		fprintf(out,
			"complete -c mtbpf -n '__mtbpf_wants_command; or __mtbpf_in help' -a %s "
			"-d ",
			commands[i].name);
		put_fish_word(out, commands[i].summary);
		putc('\n', out);
		for (size_t j = 0; table && j < table->count; j++)
			put_fish_option(out, commands[i].name, &table->specs[j]);
		if (table)
			fprintf(out,
				"complete -c mtbpf -n '__mtbpf_in %s' -o help -d 'print its "
				"help'\n",
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
	{"commands", man__commands, false}, {"bash-tables", bash__tables, false},
	{"zsh-tables", zsh__tables, false}, {"fish-tables", fish__tables, false},
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
