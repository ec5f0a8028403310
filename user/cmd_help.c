// SPDX-License-Identifier: MIT
/* help: shows the commands, or the options of one. */
#include <stdio.h>

#include "cmd.h"
#include "cmd_table.h"
#include "util/log.h"
#include "util/names.h"

int refuse_command(const char *name)
{
	struct nearest nearest = {.word = name};

	for (size_t i = 0; commands[i].name; i++)
		nearest__offer(&nearest, commands[i].name);
	log__error("unknown command '%s'", name);
	if (nearest__result(&nearest))
		log__hint("did you mean '%s'? 'mtbpf help' lists all commands",
			  nearest__result(&nearest));
	else
		log__hint("'mtbpf help' lists the commands");
	return EXIT_USAGE;
}

void print_usage(FILE *out)
{
	fputs("mtbpf: what a slow call did in the milliseconds before, every call and return\n\n"
	      "  mtbpf watch  -pid PID -symbol one_iter                     how far apart?\n"
	      "  mtbpf attach -pid PID -symbol one_iter -delay-thresh 10ms  catch the slow one\n\n",
	      out);
	for (size_t i = 0; commands[i].name; i++)
		fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].summary);
	fputs("\n'mtbpf CMD -help' shows the options of CMD\n", out);
}

int cmd_help(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_usage(stdout);
		return EXIT_OK;
	}
	if (argc > 2) {
		log__error("help: unknown command '%s'", argv[2]);
		log__hint("'mtbpf help' lists the commands, 'mtbpf help CMD' the options of one");
		return EXIT_USAGE;
	}
	command = command__find(argv[1]);
	if (!command)
		return refuse_command(argv[1]);
	if (command->options)
		options__print_help(command->options, stdout);
	else
		print_usage(stdout);
	return EXIT_OK;
}
