/* SPDX-License-Identifier: MIT */
/*
 * What the build makes of the option tables: parts of man pages (in scdoc's format) and of shell
 * completion. Each writes its part to out; those that are of a command get it.
 */
#ifndef MTBPF_MANUAL_MANUAL_H
#define MTBPF_MANUAL_MANUAL_H

#include <stdio.h>

#include "cmd_table.h"
#include "cli/options.h"

/* Of a page: its first line, NAME's, SYNOPSIS's, OPTIONS' and EXAMPLES' content, SEE ALSO's. */
void man__title(FILE *out, const struct command *command);
void man__name(FILE *out, const struct command *command);
void man__synopsis(FILE *out, const struct command *command);
void man__options(FILE *out, const struct command *command);
void man__examples(FILE *out, const struct command *command);
void man__see_also(FILE *out, const struct command *command);
/* A list of all commands; command is not read. */
void man__commands(FILE *out, const struct command *command);

/* What the arguments of an option are, as the hand-written half of the completions calls it. */
enum value_kind {
	VALUE_NONE,    /* there is no argument */
	VALUE_ANY,     /* nothing that could be proposed */
	VALUE_CHOICES, /* spec->choices */
	VALUE_PIDS,
	VALUE_NAMES, /* of processes */
	VALUE_SYMBOLS,
	VALUE_CONTAINERS,
	VALUE_CGROUPS,
	VALUE_FILES,
	VALUE_FOLDERS,
};
enum value_kind value_kind__of(const struct option_spec *spec);

/* Of all commands; command is not read. */
void bash__tables(FILE *out, const struct command *command);
void zsh__tables(FILE *out, const struct command *command);
void fish__tables(FILE *out, const struct command *command);

#endif
