// SPDX-License-Identifier: MIT
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
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

int exit_code_for(int err)
{
	/* Some errors, such as -ENOMEM, come without a message. */
	if (err && !log__has_error()) {
		log__error("%s", strerror(-err));
		if (err == -ENOMEM)
			log__hint("use a smaller -snapshot-size, or record fewer threads");
		else
			log__hint("run the command again with -v for details");
	}
	switch (-err) {
	case 0:
		return EXIT_OK;
	case EINVAL:
	case ESRCH:
	case ENOENT:
	case ENOTUNIQ:
	case ENODATA:
	case ENOEXEC:
	case ENODEV:
	case ENAMETOOLONG:
	case EILSEQ:
		return EXIT_USAGE;
	default:
		return EXIT_FAILED;
	}
}

int exit_code_for_options(int err)
{
	if (err == -ENOMEM)
		return exit_code_for(err);
	return err == -ECANCELED ? EXIT_OK : EXIT_USAGE;
}

int refuse_lost(const char *command)
{
	log__error("%s: -strict: something was lost", command);
	log__hint("the lines 'lost:' and 'gaps:' say what; without -strict this is not an error");
	return EXIT_LOST;
}

int refuse_word(const struct option_table *table, const char *word)
{
	log__error("%s: unexpected argument '%s'", table->command, word);
	if (word[strspn(word, "0123456789")])
		log__hint("usage: mtbpf %s", table->usage);
	else
		log__hint("to name a process use -pid %s", word);
	return EXIT_USAGE;
}

int parse_around_words(const struct option_table *table, void *dst, int argc, char **argv,
		       const char **words, int n, int *found)
{
	int rest, err = options__parse(table, dst, argc, argv, &rest);

	for (*found = 0; !err && rest < argc && *found <= n; ++*found) {
		if (*found < n)
			words[*found] = argv[rest];
		argv[rest] = argv[0];
		argv += rest;
		argc -= rest;
		err = options__parse(table, dst, argc, argv, &rest);
	}
	return err;
}

int parse_with_words(const struct option_table *table, void *dst, int argc, char **argv,
		     const char *what, const char **words, int n)
{
	int found, err = parse_around_words(table, dst, argc, argv, words, n, &found);

	if (err || found == n)
		return err;
	if (n > 1)
		log__error("%s: give %d %ss", table->command, n, what);
	else
		log__error(found ? "%s: one %s at a time" : "%s: no %s given", table->command,
			   what);
	log__hint("usage: mtbpf %s", table->usage);
	return -EINVAL;
}
