// SPDX-License-Identifier: MIT
#include "cmd.h"

#include <errno.h>
#include <string.h>

#include "util/log.h"
#include "cli/options.h"

/* Prints an error if no message has been printed, as is usual for -ENOMEM. */
static void say_unsaid(int err)
{
	if (log__has_error())
		return;
	log__error("%s", strerror(-err));
	if (err == -ENOMEM)
		log__hint("use a smaller -snapshot-size, or record fewer threads");
	else
		log__hint("run the command again with -v for details");
}

int exit_code_for(int err)
{
	if (err)
		say_unsaid(err);
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
		log__error("%s: expected %d %ss", table->command, n, what);
	else
		log__error(found ? "%s: one %s at a time" : "%s: which %s?", table->command, what);
	log__hint("usage: mtbpf %s", table->usage);
	return -EINVAL;
}
