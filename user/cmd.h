/* SPDX-License-Identifier: MIT */
/* The commands. Each takes its own argv (argv[0] is its name) and returns the exit code. */
#ifndef MTBPF_CMD_H
#define MTBPF_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,	     /* unknown command, option, symbol, process: nothing was touched */
	EXIT_NO_TRIGGER = 3, /* the time was over; a snapshot was still taken */
	EXIT_LOST = 4,	     /* -strict: something is missing in what was recorded, or decoded */
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

/* The commands, a line each. */
void print_usage(FILE *out);
/* The version and the commit, on one line. */
void print_version(void);
/* Says that there is no such command; EXIT_USAGE. */
int refuse_command(const char *name);

/* The exit code for what options__parse() returned; only for an error. */
int exit_code_for_options(int err);
/* The exit code for what a stage returned. */
int exit_code_for(int err);
/* Says that -strict is not met; EXIT_LOST. */
int refuse_lost(const char *command);

struct option_table;
/* Says that a word is none of the command's; EXIT_USAGE. */
int refuse_word(const struct option_table *table, const char *word);

/*
 * options__parse() of a command that takes words, up to n, before, behind or amid its options:
 * *found of them, n + 1 where there are more.
 */
int parse_around_words(const struct option_table *table, void *dst, int argc, char **argv,
		       const char **words, int n, int *found);

/*
 * The same of one that takes n words. With fewer, or more, -EINVAL after a line and a hint, which
 * call one `what`: "recording".
 */
int parse_with_words(const struct option_table *table, void *dst, int argc, char **argv,
		     const char *what, const char **words, int n);

#endif
