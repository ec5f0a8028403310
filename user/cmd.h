/* SPDX-License-Identifier: MIT */
/*
 * The commands: each takes its own argv (argv[0] is its name) and returns the exit code. Their
 * table, for main.c, man pages and completion, and functions that several of them use.
 */
#ifndef MTBPF_CMD_H
#define MTBPF_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "cli/options.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2, /* unknown command, option, symbol or process: nothing was touched */
	EXIT_NO_TRIGGER =
		3,     /* -timeout, -max-hits or CMD ended without a trigger; snapshot taken */
	EXIT_LOST = 4, /* -strict: something was lost in recording or decoding */
};

int cmd_attach(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_decode(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_view(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_selftest(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_version(int argc, char **argv);

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
	const struct option_table *options; /* NULL: no options */
};

/* In the order of the help text; the last entry has a NULL name. */
extern const struct command commands[];

/* The command with this name, or NULL. */
const struct command *command__find(const char *name);

extern const struct option_table attach_table, run_table, record_table, decode_table, report_table,
	diff_table, view_table, watch_table, list_table, check_table, version_table, selftest_table;

/* Prints the commands, one per line. */
void print_usage(FILE *out);
/* Prints the version and the commit on one line. */
void print_version(void);
/* Reports an unknown command. Returns EXIT_USAGE. */
int refuse_command(const char *name);

/* The exit code for an error of options__parse(). */
int exit_code_for_options(int err);
/* The exit code for the result of a stage. Prints an error if none has been printed. */
int exit_code_for(int err);
/* Reports that -strict is not met. Returns EXIT_LOST. */
int refuse_lost(const char *command);

/* Reports an unexpected argument. Returns EXIT_USAGE. */
int refuse_word(const struct option_table *table, const char *word);

/*
 * Like options__parse(), for a command with up to n words before, between or after its options.
 * Sets *found to their number, or to n + 1 if there are more.
 */
int parse_around_words(const struct option_table *table, void *dst, int argc, char **argv,
		       const char **words, int n, int *found);

/*
 * Like parse_around_words(), for a command with exactly n words. Otherwise -EINVAL after a message
 * and a hint that call a word `what`, such as "recording".
 */
int parse_with_words(const struct option_table *table, void *dst, int argc, char **argv,
		     const char *what, const char **words, int n);

#endif
