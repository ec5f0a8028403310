// SPDX-License-Identifier: MIT
/* mtbpf: from its first word to a command. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "cmd_table.h"

int main(int argc, char **argv)
{
	const struct command *command;
	const char *name;

	if (argc < 2) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	name = argv[1];
	if (!strcmp(name, "-help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (!strcmp(name, "-version") || !strcmp(name, "--version")) {
		print_version();
		return EXIT_OK;
	}
	command = command__find(name);
	return command ? command->run(argc - 1, argv + 1) : refuse_command(name);
}
