// SPDX-License-Identifier: MIT
#include "cmd.h"

#include <errno.h>
#include <string.h>

#include "util/log.h"
#include "util/options.h"

int exit_code_for_options(int err)
{
	return err == -ECANCELED ? EXIT_OK : EXIT_USAGE;
}

int exit_code_for(int err)
{
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

int refuse_word(const struct option_table *table, const char *word)
{
	log__error("%s: what is '%s'?", table->command, word);
	if (word[strspn(word, "0123456789")])
		log__hint("usage: mtbpf %s", table->usage);
	else
		log__hint("a process is given with -pid: -pid %s", word);
	return EXIT_USAGE;
}
