// SPDX-License-Identifier: MIT
/* The table of commands, and the command help. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "util/log.h"
#include "util/names.h"

const struct command commands[] = {
	{"attach", cmd_attach, "wait for a slow call in a running process, capture and decode it",
	 &attach_table},
	{"run", cmd_run, "attach to a program that mtbpf starts: run [options] -- CMD ARGS",
	 &run_table},
	{"record", cmd_record, "capture only, without decoding", &record_table},
	{"decode", cmd_decode, "turn a recording into a trace", &decode_table},
	{"report", cmd_report, "what made the slow iteration slow, from a recording or a trace",
	 &report_table},
	{"diff", cmd_diff, "what one slow iteration did that another did not", &diff_table},
	{"view", cmd_view, "open a trace in Perfetto, at the hit", &view_table},
	{"watch", cmd_watch, "hits and the time between them, to choose a threshold", &watch_table},
	{"list", cmd_list, "list the functions of a process that can be triggers", &list_table},
	{"check", cmd_check, "what this machine can do, and what is missing", &check_table},
	{"selftest", cmd_selftest, "check on this machine that traces are right", &selftest_table},
	{"help", cmd_help, "this, or help CMD", NULL},
	{"version", cmd_version, "versions of mtbpf and its libraries, and features found here",
	 &version_table},
	{NULL, NULL, NULL, NULL},
};

const struct command *command__find(const char *name)
{
	for (size_t i = 0; commands[i].name; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

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
	fputs("mtbpf: waits for the slow call of a running program and shows what it did\n\n"
	      "  mtbpf watch  -pid PID -symbol one_iter                     what is normal?\n"
	      "  mtbpf attach -pid PID -symbol one_iter -delay-thresh 10ms  catch a slow one\n\n",
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
