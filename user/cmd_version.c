// SPDX-License-Identifier: MIT
/* version */
#include <stdio.h>

#include "cmd.h"
#include "util/log.h"

int cmd_version(int argc, char **argv)
{
	if (argc > 1) {
		log__error("version: what is '%s'?", argv[1]);
		log__hint("'mtbpf help' lists the commands");
		return EXIT_USAGE;
	}
	puts("mtbpf " MTBPF_VERSION);
	return EXIT_OK;
}
