/* SPDX-License-Identifier: MIT */
/* The table of commands and their options, for main.c, man pages and completion. */
#ifndef MTBPF_CMD_TABLE_H
#define MTBPF_CMD_TABLE_H

#include "cli/options.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
	const struct option_table *options; /* NULL: no options */
};

/* In the order of the help text; the last entry has no name. */
extern const struct command commands[];

/* Finds a command by name, or NULL. */
const struct command *command__find(const char *name);

extern const struct option_table attach_table, run_table, record_table, decode_table, report_table,
	diff_table, view_table, watch_table, list_table, check_table, version_table, selftest_table;

#endif
