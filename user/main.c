// SPDX-License-Identifier: MIT
/* mtbpf: the table of commands. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "util/log.h"
#include "util/nearest.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
};

static int cmd_help(int argc, char **argv);

static int refuse_more(const char *command, const char *word)
{
	log__error("%s: what is '%s'?", command, word);
	log__hint("'mtbpf help' lists the commands, 'mtbpf help CMD' a command's options");
	return EXIT_USAGE;
}

static int cmd_version(int argc, char **argv)
{
	if (argc > 1)
		return refuse_more("version", argv[1]);
	puts("mtbpf " MTBPF_VERSION);
	return EXIT_OK;
}

static const struct command commands[] = {
	{"attach", cmd_attach, "wait for the slow call in a running process; capture, decode"},
	{"run", cmd_run, "the same for a program started here: run [options] -- CMD ARGS"},
	{"record", cmd_record, "capture only: leaves NAME.mtbpf for decode"},
	{"decode", cmd_decode, "turn a recording into a trace"},
	{"report", cmd_report, "what made the slow iteration slow, of a recording or a trace"},
	{"diff", cmd_diff, "what one slow iteration did that another did not"},
	{"view", cmd_view, "open a trace in Perfetto, at the hit"},
	{"watch", cmd_watch, "hits and their delays, no capture: which threshold?"},
	{"list", cmd_list, "the functions of a process that can be triggers"},
	{"check", cmd_check, "what this machine can do, and what is missing"},
	{"help", cmd_help, "this, or help CMD"},
	{"version", cmd_version, "the version"},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int unknown_command(const char *name)
{
	struct nearest nearest = {.word = name};

	for (size_t i = 0; i < N_COMMANDS; i++)
		nearest__offer(&nearest, commands[i].name);
	log__error("unknown command '%s'", name);
	if (nearest__result(&nearest))
		log__hint("did you mean '%s'? 'mtbpf help' lists them", nearest__result(&nearest));
	else
		log__hint("'mtbpf help' lists the commands");
	return EXIT_USAGE;
}

static void print_usage(FILE *out)
{
	fputs("mtbpf: what a slow call did in the milliseconds before, every call and return\n\n"
	      "  mtbpf watch  -pid PID -symbol one_iter                     how far apart?\n"
	      "  mtbpf attach -pid PID -symbol one_iter -delay-thresh 10ms  catch the slow one\n\n",
	      out);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].summary);
	fputs("\n'mtbpf CMD -help' shows a command's options\n", out);
}

static int cmd_help(int argc, char **argv)
{
	const struct command *command;
	char *words[] = {NULL, "-help", NULL};

	if (argc < 2) {
		print_usage(stdout);
		return EXIT_OK;
	}
	if (argc > 2)
		return refuse_more("help", argv[2]);
	command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	if (command->run == cmd_help || command->run == cmd_version) {
		print_usage(stdout);
		return EXIT_OK;
	}
	words[0] = argv[1];
	return command->run(2, words);
}

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
	if (!strcmp(name, "-version") || !strcmp(name, "--version"))
		name = "version";
	command = find_command(name);
	return command ? command->run(argc - 1, argv + 1) : unknown_command(name);
}
