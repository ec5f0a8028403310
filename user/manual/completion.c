// SPDX-License-Identifier: MIT
/* Completion for bash, zsh and fish: what there is to propose; how it is found, the templates know.
 */
#include <string.h>

#include "manual/manual.h"
#include "cli/options_internal.h"

/* By the name of the option, or by what its argument is called. */
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

enum value_kind value_kind__of(const struct option_spec *spec)
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

/* A line an option: its name, what it takes, and its choices. A table in no quotes but these. */
void bash__tables(FILE *out, const struct command *command)
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

/* In single quotes, amid [brackets]. */
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

/* "'(-output -o)-output[...]:FILE:_mtbpf_files'": of the names of one option only one is wanted. */
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

static void put_zsh_options(FILE *out, const struct option_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct option_spec *spec = &table->specs[i];
		char letter[] = {spec->letter, '\0'};

		put_zsh_option(out, spec->name, spec);
		if (spec->alias)
			put_zsh_option(out, spec->alias, spec);
		if (spec->letter)
			put_zsh_option(out, letter, spec);
	}
}

void zsh__tables(FILE *out, const struct command *command)
{
	fputs("_mtbpf_commands=(\n", out);
	for (size_t i = 0; commands[i].name; i++) {
		fprintf(out, "\t'%s:", commands[i].name);
		put_help(out, commands[i].summary);
		fputs("'\n", out);
	}
	fputs(")\n_mtbpf_table() {\n\tspecs=()\n\tcase $1 in\n", out);
	for (size_t i = 0; commands[i].name; i++) {
		if (!commands[i].options)
			continue;
		fprintf(out, "\t%s) specs=(\n", commands[i].name);
		put_zsh_options(out, commands[i].options);
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

static void put_fish_value(FILE *out, const struct option_spec *spec)
{
	enum value_kind kind = value_kind__of(spec);

	if (kind == VALUE_NONE || spec->kind == OPT_COUNT)
		return;
	if (kind == VALUE_FILES) {
		fputs(" -r -F", out);
		return;
	}
	fputs(" -x", out);
	if (kind == VALUE_CHOICES) {
		fputs(" -a '", out);
		put_choices(out, spec);
		putc('\'', out);
	} else if (kind != VALUE_ANY) {
		fprintf(out, " -a '(__mtbpf_%s)'", kind_names[kind]);
	}
}

/* "complete -c mtbpf -n '__mtbpf_in attach' -o output -s o -r -F -d '...'" */
static void put_fish_option(FILE *out, const char *command, const struct option_spec *spec)
{
	fprintf(out, "complete -c mtbpf -n '__mtbpf_in %s' -o %s", command, spec->name);
	if (spec->alias)
		fprintf(out, " -o %s", spec->alias);
	if (spec->letter)
		fprintf(out, " -s %c", spec->letter);
	put_fish_value(out, spec);
	fputs(" -d ", out);
	put_fish_word(out, spec->help);
	putc('\n', out);
}

void fish__tables(FILE *out, const struct command *command)
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
