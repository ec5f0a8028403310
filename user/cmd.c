// SPDX-License-Identifier: MIT
#include "cmd.h"

#include <errno.h>
#include <string.h>

#include "util/log.h"
#include "cli/options.h"

/* Where the cause is known it is said; that memory ran out, many leave to whoever hears of it. */
static void say_unsaid(int err)
{
	if (log__has_error())
		return;
	log__error("%s", strerror(-err));
	if (err == -ENOMEM)
		log__hint("a smaller -snapshot-size, or fewer threads, need less");
	else
		log__hint("-v says more");
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
	log__error("%s: -strict: not everything is there that ran", command);
	log__hint("the lines 'lost:' and 'gaps:' say what; without -strict it is no error");
	return EXIT_LOST;
}

int refuse_word(const struct option_table *table, const char *word)
{
	log__error("%s: what is '%s'?", table->command, word);
	if (word[strspn(word, "0123456789")])
		log__hint("usage: mtbpf %s", table->usage);
	else
		log__hint("a process is given with -pid: -pid %s", word);
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
		log__error("%s: it takes %d %ss", table->command, n, what);
	else
		log__error(found ? "%s: one %s at a time" : "%s: which %s?", table->command, what);
	log__hint("usage: mtbpf %s", table->usage);
	return -EINVAL;
}
